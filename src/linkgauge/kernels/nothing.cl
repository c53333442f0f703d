// A kernel that does nothing: what its launch takes is what any launch takes.

__kernel void nothing(void) {}
