#!/opt/tessera/bin/node
/** Ends with 0 when the node of this machine is ready; systemd stops it after TimeoutStartSec. */
const port = process.env.TESSERA_PORT || "3000";
for (;;) {
  try {
    if ((await fetch(`http://localhost:${port}/readyz`)).ok) {
      break;
    }
  } catch {
    // It does not listen yet.
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
}
