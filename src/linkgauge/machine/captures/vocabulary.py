"""Words of hardware and software. Shared documents may contain them, because they name nobody."""

from __future__ import annotations

from functools import cache

_PRODUCTS = """
accelerator adapter adapters ai altra amazon amd ampere apple arc arm ascend aspeed atom
authenticamd basic blackwell bluefield bmc board bridge broadcom broadwell card cascade
cascadelake cavium cdna centaur center chelsio cisco cls co compute computing connectx controller
cooper core corp corporation cortex cpu cpus cxl data ddr dell device devices dgx dimm downstream
dram dual duo edition emerald epyc ethernet example express family field fireplane fujitsu
function fusion gaudi gb gddr geforce gen generation generic genoa genuine genuineintel gfx ghz
gib gigabyte gmbh gold google gpu grace granite graphcore graphics graviton grid gtx habana
haswell hat hbm hewlett hgx hifive hopper host hpe huawei hygon hygongenuine hynix ibm ice icelake
inc infiniband instinct integrated intel ipu jetson kunlun kunpeng lake lenovo lite lpddr lsi ltd
mango marvell max maxq mb mellanox mhz mi micro microchip microsoft mig milan milkv module ncc nec
neoverse network networking neural node npu nve nvidia nvl nvlink nvlinks nvm nvme nvswitch
nvswitches opencl opteron orin packard passthrough pci pcie pciexpress pensando pex phi phytium
platinum pocl ponte port ppu pro processor processors pthread quad quadro qualcomm quanta quartz
radeon rapids rbln rdna rebellions red risc riscv rome root rtx ryzen samsung sapphire
sapphirerapids scalable series sifive silver sim simulated simulator sk skylake soc socket
solarflare sophgo spacemit sparc stack starfive super supermicro switch sxm systems technologies
technology tegra tensor tesla ti tib tile titan tpu tu turbo turin twinax ultra unit unmatched
upstream vecchio vega vgpu vii virtual virtualized visionfive vmware with workstation xavier xe
xeon xgmi xilinx xpu zen zhenwu znver
"""
_SYSTEM = """
aarch acpi advise alma almalinux alpha alpine always amx amzn anolis apptainer arch armv asimd avx
aws azure azurelinux beta bhyve bios bochs bookworm bottlerocket build bullseye buster centos
cloud conservative container containerd coreboot coreos cppc cpufreq cpuidle cri crio deb debian
default dev docker dt dynamic edk el enroot enterprise fc fedora firecracker flatcar focal garden
gc gcp gentoo git gnu gvisor hwe hwp hyper hyperv i idle imafdc imafdch imafdcv innotek jammy
kubepods kubernetes kvm kylin le leap libpod linux loongarch lowlatency lts lxc madvise mariner
neon never nixos noble none nspawn nutanix oci ondemand openeuler openstack opensuse openvz
optimized oracle oraclelinux os ovmf parallels pcc performance photon podman powerpc powersave
powersupersave ppc preempt pstate qemu raspi rc realtime redhat release rev revision rhel rocky rt
rv rva s schedutil seabios server sid singularity sles slof slurm smp sse stream suse sve systemd
talos trixie tumbleweed ubuntu uefi uek unix unknown userspace ver version virtualbox vnni within
wsl x xen zba zbb zicsr
"""
_DRIVERS = """
active added ahci amdgpu amdkfd armed ast be binary bindings bnxt bond br built cu cuda cudart
cupy cxgb dcgm disabled discovery distribution dkms down dpkg drm dummy e edac efa en ena eno enp
ens enx err error eth ethtool fabric fs gdrcopy gdrdrv gve habanalabs hardware hda hfi hinic hip
hns iavf ib ibp ibs ibstat ibv igb igc inactive init initializing installed iommufd irdma iw ixgbe
ixgbevf libcuda libcudart libnccl libopencl librccl line linkgauge lo loopback lscpu lspci manager
mce megaraid mgag mlx mlxn modeset mpi mpich mpt msi msix nccl net nfp nouveau numactl numpy nvgpu
nvidiafb nvml nvrtc opa openmpi pciehp pcieport peer peermem polling psm pyopencl python qed qede
qedr r rccl rdma re recovery roce rocm rpm rxe sas sfc showbus showdriverversion showhw
showproductname showtopo shpchp siw smi snd stat status tap tcp team tg tools topo topology torch
training triton tun txt ucx uio umad uname up usb uverbs uvm veth vfio virbr virtio vlan vmxnet
vvv vxlan wl wlan wlp
"""
_TOOLS = """
bandwidth bandwidthtest benchmarks imb iperf micro mlc nvbandwidth osu pbandwidthlatencytest
perftest rccl rocm sysbench test tests transferbench
"""
_STATES = """
a accelerators access after aligned all allocating allreduce an and any appear applications as at
attention avg b backward below bfloat bisection blocking blocks boost bound brake buffers bulk
busy by bytes c cap capability capture ccl ce char chase class clock clocks cluster cmdline cn
collective commit comparing completed completion config control conv copies copy cores correctable
corrected count cpuinfo cr cs current database decode denied did direct directory display does
double driver each ec ecc edp edr egress embed embedding ended enqueue errors exchange exclusive
external failure false far fatal file filling firmware flight float flop flops folder format
forward found fppt free from functions g gdrdma gemm gives group gt h half has hccs hdr head
healthy hotspot hub huge hw hz ici icilink icn icnswitch ids ifb in index input instruction
insufficient int interleaved is it its joining k kb kernel kib l lane lanes launch layer layers ld
leads leaf leaving level libraries library life limit limited link links lists load local locked
logits long m machine mapped matmul mean measuring memcpy memlock memory mesh mezz mib microcode
mid missing mlp mode model modes movsb ms multiprocessors n name names ndr near neither nic no
nonfatal nontemporal nor norm not nothing nowhere ns null nv nvb oam of off on opening optimizer
or other others output p package pageable pages part pass pcn peak permission permitted
persistence phb ping pinned pix place plain plane planning pod pong power ppt prefetch prefill
proc process processes prochot prod progress prohibited pxb q rail rank ranks rblndrv read
readable reason redirect regular remapping remote rep reported request ring row rr run scalar self
setting settings table shm short sign slowdown sm sockets softmax software source spine spl spread
st stage staging started starting state stderr step streaming stuck su success such sum supported
sv sw sync sys t taking tb tdc tells temperature temporal text the thermal thm thp threads tier
tma to tokenize took toolkit tor total translated translating translation true tuned ubb uf uint
uncorrected unhealthy unified unrolled uplink us usual v validation vector verifying volatile
voltage vr w warming way weights while wide without word words write yes
"""
_VARIABLES = """
adaptive affinity algo ar bind blis buffsize bus cache cga channel channels cnt collnet
collnetchain collnetdirect comm connection conns cross ctas cumem debug disable dmabuf dump eager
enable engine engines fastest fi first flush gdr gid gomp graph hca hsa id ifname interleave lazy
ll loading loc mask memtype min mkl mnnvl nchannels nsocks nthreads num nvls nvlstree ocl ofi omp
ompi onednn openblas order ordering ordinal pat path perthread places plugin pmix pool proto pxn
qps register relaxed reserve retry rndv rocr routing sdma sharable simple sl split stacksize
subsys tc thread thresh threshold timeout tls tree tuner ucp uct use visible xml ze zes
"""
_KERNEL = """
aer apic apparmor aspm assign ats audit auto autogroup balancing biosdevname blacklist boot bootif
btrfs bypass cgroup cgroups clocksource compat console cpumask crashkernel cstate cstates deadline
deferred dhcp dmar domain earlycon earlyprintk efficient efi enforcing ept ext fips force full
gart gfpgrub governor hierarchy hpbussize hpmemsize hpmmiosize hugepage hugepages hugepagesz hvc
ibt ifnames image initrd iommu ip irq irqaffinity isolated isolcpus kaslr kpti kptr kunit lockdown
log loglevel managed mds memmap mitigations modprobe msr mtrr native nested nmi noaer noapic noats
nocb nocbs nocrs nohlt nohz nokaslr nommconf nomodeset nopv noretpoline noretry nosmt nospec
nospectre numa numad nvreg offline online overlay override panic pasid passive perf pm poll pre
printk psi pt pti quiet ramdisk random rcu rcutree rd rdt realloc registrydwords reliable retbleed
rmintrlockingmode ro rootdelay rootflags rootfstype rootwait rw safe scsi security selinux serial
size skew smmu smt softlockup spec spectre splash srbds sriov store strict sva swapaccount swiotlb
tick transparent trust tsc tsx tty ttyama ttys tune usbcore vdso vga video vmlinuz vmx vsyscall vt
watchdog workqueue xfs xsave zswap
"""

_CALLS = """
acquired address allgather alloc alltoall already argument assert async attribute barrier bcast
broadcast close contained context create ctx destroy destroyed end event exec export failed fetch
finish gather get granularity handle illegal import instantiate internal invalid irecv isend large
map mem memset multicast object open out pitch primary properties query record recv reduce reset
resources scatter send set shareable sigabrt sigbus sigfpe sigill sigkill signal sigsegv sigterm
start synchronize too uncorrectable unmap unregister value wait win wrong
"""
_OPTIONS = """
against aggregate allow anonymize backend benchmark blind budget buffer change csv detect dry
duration env experiment fault faults fix github graphed help hosts implementation install
iterations json junit keep label last least limits listen loops loss markdown ncu noisy nsys only
parallel parquet payload piece precision prefix prepare probes profile reductions refresh
registered repeat rerun resume roots rounds sample samples sarif script seed significance since
textfile tokens trace types untuned url utilization verbose verdict verify yaml zstd
"""


@cache
def hardware_words() -> frozenset[str]:
    groups = (_PRODUCTS, _SYSTEM, _DRIVERS, _TOOLS, _STATES, _VARIABLES, _KERNEL, _CALLS, _OPTIONS)
    return frozenset(word for group in groups for word in group.split())
