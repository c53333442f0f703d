"""`variables_launcher.py -n RANKS COMMAND...`: starts so many processes of a command on this
machine, as ranks that meet at a port of the loopback, and waits for all. Ends with the code of
rank 0."""

import os
import secrets
import socket
import subprocess
import sys

count, command = int(sys.argv[2]), sys.argv[3:]
# Below the ports that the kernel gives to others by itself, which might take it before rank 0 does.
PORTS = range(20_000, 32_000)
while True:
    port = secrets.choice(PORTS)
    try:
        socket.create_server(("127.0.0.1", port)).close()
        break
    except OSError:
        continue
address = f"127.0.0.1:{port}"
told = {
    "LINKGAUGE_RANKS": str(count),
    "LINKGAUGE_FIRST": address,
    "LINKGAUGE_TOKEN": secrets.token_hex(8),
}
ranks = [
    subprocess.Popen(command, env=os.environ | told | {"LINKGAUGE_RANK": str(number)})
    for number in range(count)
]
codes = [rank.wait() for rank in ranks]
sys.exit(codes[0])
