// Computes in registers alone, for as many rounds as are asked for: what copies run beside.

#define CHAINS 8
#define STEPS 32

float first_of(int chain) { return 0.25f + chain / 16.0f; }

// A round is STEPS steps x * factor + summand of each chain. The host gives -1 and 1: x is then
// exactly 1 - x after a step, and what it was after two, but no compiler knows. Whoever finds
// otherwise says so in `wrong`; nothing else is written.
__kernel void multiply_add(ulong rounds, float factor, float summand, __global ulong *wrong) {
  float x[CHAINS];
  for (int chain = 0; chain < CHAINS; ++chain) x[chain] = first_of(chain);
  for (ulong round = 0; round < rounds; ++round)
    for (int step = 0; step < STEPS; ++step)
      for (int chain = 0; chain < CHAINS; ++chain) x[chain] = x[chain] * factor + summand;
  int right = 1;
  for (int chain = 0; chain < CHAINS; ++chain) right = right && x[chain] == first_of(chain);
  if (!right) *wrong = 1;
}
