"""The binding of NVML as small as can be: answers by function, which the test sets."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

GPU, SWITCH = 0, 2
FIELDS = {
    "NVLINK_SPEED_MBPS_COMMON": 90,
    "NVLINK_LINK_COUNT": 91,
    "NVLINK_ERROR_DL_REPLAY": 161,
    "NVLINK_ERROR_DL_RECOVERY": 162,
    "NVLINK_ERROR_DL_CRC": 163,
    "NVLINK_GET_SPEED": 164,
    "C2C_LINK_COUNT": 170,
    "C2C_LINK_GET_STATUS": 171,
    "C2C_LINK_GET_MAX_BW": 172,
    "NVLINK_COUNT_RCV_ERRORS": 208,
    "NVLINK_THROUGHPUT_DATA_TX": 138,
    "NVLINK_THROUGHPUT_DATA_RX": 139,
    "NVLINK_COUNT_XMIT_BYTES": 202,
    "NVLINK_COUNT_RCV_BYTES": 204,
}
_NAMES = {number: name for name, number in FIELDS.items()}
NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, FUNCTION_NOT_FOUND = 3, 4, 6, 13
UINT, ULONGLONG = 1, 3


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__({3: "Not Supported", 4: "Insufficient Permissions"}.get(value, value))
        self.value = value


class FabricInfo(ctypes.Structure):
    _fields_ = [
        ("clusterUuid", ctypes.c_char * 16),
        ("status", ctypes.c_uint),
        ("cliqueId", ctypes.c_uint),
        ("state", ctypes.c_uint),
    ]


def address(domain=0, bus=0, device=0):
    return SimpleNamespace(domain=domain, bus=bus, device=device)


H200 = {
    "nvmlInit": None,
    "nvmlShutdown": None,
    "nvmlDeviceGetHandleByPciBusId": lambda pci: f"handle of {pci}",
    "nvmlSystemGetDriverVersion": lambda: "580.95.05",
    "nvmlSystemGetNVMLVersion": lambda: "13.580.95.05",
    "nvmlDeviceGetBoardPartNumber": "692-2G520-0282-001",
    "nvmlDeviceGetVbiosVersion": "96.00.A5.00.01",
    "nvmlDeviceGetCurrPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 1980, 2: 3201}[kind],
    "nvmlDeviceGetMaxClockInfo": lambda handle, kind: {1: 1980, 2: 3201}[kind],
    "nvmlDeviceGetClock": 1980,
    "nvmlDeviceGetMemoryBusWidth": 6144,
    "nvmlDeviceGetNumGpuCores": 16896,
    "nvmlDeviceGetCudaComputeCapability": [9, 0],
    "nvmlDeviceGetTemperature": 41,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 1,
    "nvmlDeviceGetPcieReplayCounter": 7,
    "nvmlDeviceGetPowerUsage": 118_250,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetCurrentEccMode": 1,
    "nvmlDeviceGetTotalEccErrors": lambda handle, kind, counter: {0: 3, 1: 0}[kind],
    "nvmlDeviceGetCount": 2,
    "nvmlDeviceGetHandleByIndex": lambda number: number,
    "nvmlDeviceGetPciInfo": lambda handle: address(bus=0x1B + handle),
    "nvmlDeviceGetName": "NVIDIA H200",
    "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
    "nvmlDeviceGetMemoryInfo": lambda handle, version=1: SimpleNamespace(
        total=141 << 30, reserved=1 << 30
    ),
    "nvmlSystemGetCudaDriverVersion_v2": 13000,
    "nvmlDeviceGetPcieThroughput": lambda handle, counter: {0: 2000, 1: 1000}[counter],
    "nvmlDeviceGetRemappedRows": (0, 2, 1, 0),
    "nvmlDeviceGetMigMode": [0, 1],
    "nvmlDeviceGetBAR1MemoryInfo": SimpleNamespace(bar1Total=1 << 38),
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetComputeMode": 3,
    "nvmlDeviceGetComputeRunningProcesses": (),
    "nvmlDeviceGetGraphicsRunningProcesses": (),
    "nvmlDeviceGetArchitecture": 9,
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=0, memory=0),
    "nvmlDeviceGetNvLinkState": 1,
    "nvmlDeviceGetNvLinkVersion": 6,
    "nvmlDeviceGetNvLinkRemoteDeviceType": SWITCH,
    "nvmlDeviceGetNvLinkRemotePciInfo": lambda handle, link: address(bus=7 + link % 4),
}
"""What one answers: a value for any device, or a function of the call's arguments."""


class FakeNvml:
    """`answers` are by function, `fields` by NVML_FI_DEV_ name: a value, or a function of the link;
    `failing` are error numbers by function. What there is no answer to is not in the library."""

    NVML_SUCCESS = 0
    NVML_ERROR_NOT_SUPPORTED = NOT_SUPPORTED
    NVML_ERROR_NO_PERMISSION = NO_PERMISSION
    NVML_ERROR_FUNCTION_NOT_FOUND = FUNCTION_NOT_FOUND
    nvmlMemory_v2 = 0x02000028  # noqa: N815  # the binding's name
    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
    NVML_TEMPERATURE_GPU = 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 1
    NVML_VOLATILE_ECC = 0
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1
    NVML_CLOCK_ID_APP_CLOCK_TARGET, NVML_CLOCK_ID_APP_CLOCK_DEFAULT = 1, 2
    NVML_NVLINK_DEVICE_TYPE_GPU = GPU
    NVML_NVLINK_DEVICE_TYPE_IBMNPU = 1
    NVML_NVLINK_DEVICE_TYPE_SWITCH = SWITCH
    NVMLError = NVMLError
    c_nvmlGpuFabricInfoV_t = FabricInfo  # noqa: N815  # the binding's name

    def __init__(self, **answers):
        self.answers = {**H200, **answers}
        self.fields = {
            "NVLINK_LINK_COUNT": 18,
            "NVLINK_GET_SPEED": 26562,
            "NVLINK_ERROR_DL_REPLAY": 0,
            "NVLINK_ERROR_DL_RECOVERY": 0,
            "NVLINK_ERROR_DL_CRC": 0,
            "NVLINK_THROUGHPUT_DATA_TX": 4,
            "NVLINK_THROUGHPUT_DATA_RX": 2,
        }
        self.failing = {}
        self.fabric = (3, 0)
        self.cluster = bytes(16)
        self.clique = 0
        self.calls = []
        for name, number in FIELDS.items():
            setattr(self, f"NVML_FI_DEV_{name}", number)

    def __getattr__(self, name):
        if not name.startswith("nvml") or name not in self.answers:
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append(name)
            if name in self.failing:
                raise NVMLError(self.failing[name])
            answer = self.answers[name]
            return answer(*arguments) if callable(answer) else answer

        return call

    def nvmlDeviceGetGpuFabricInfoV(self, handle, pointer):  # noqa: N802
        if "nvmlDeviceGetGpuFabricInfoV" in self.failing:
            raise NVMLError(self.failing["nvmlDeviceGetGpuFabricInfoV"])
        info = ctypes.cast(pointer, ctypes.POINTER(FabricInfo)).contents
        info.state, info.status = self.fabric
        ctypes.memmove(pointer, self.cluster, 16)
        info.cliqueId = self.clique
        return 0

    def nvmlDeviceGetFieldValues(self, handle, wanted):  # noqa: N802
        if "nvmlDeviceGetFieldValues" in self.failing:
            raise NVMLError(self.failing["nvmlDeviceGetFieldValues"])
        return [self._field(_NAMES[number], link) for number, link in wanted]

    def _field(self, name, link):
        answer = self.fields.get(name)
        value = answer(link) if callable(answer) else answer
        told = SimpleNamespace(uiVal=value, ullVal=value)
        unknown = NOT_SUPPORTED if value is None else 0
        kind = ULONGLONG if "ERROR" in name else UINT
        return SimpleNamespace(nvmlReturn=unknown, valueType=kind, value=told)


class Device:
    """A CUDA device, as far as NVML's part needs it."""

    def __init__(self, index=0, model="NVIDIA H200", instance=False):
        self.index, self.model, self.is_instance, self.near = index, model, instance, index
        self.failure = None

    def pci_address(self):
        if self.failure:
            raise self.failure
        return f"0000:{0x1B + self.index:02x}:00.0"

    def uuid(self):
        return f"{'MIG' if self.is_instance else 'GPU'}-{self.index}"
