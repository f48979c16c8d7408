/**
 * Who deals a GPU out, among the nodes and the programs of workers on one machine: a socket in the
 * abstract namespace of Linux with the GPU's name, which one of them can have. It needs no folder
 * that several users may write to, and the kernel takes it from a process that has died, so that
 * nothing is ever stale. It is of one network namespace: containers that have their own do not see
 * each other's.
 */
import { createServer } from "node:net";

/** Locks a GPU until this is disposed of or the process ends; undefined while another process has it. */
export function lockGpu(uuid: string): Disposable | undefined {
  if (process.platform !== "linux") {
    return { [Symbol.dispose]: () => {} };
  }
  const server = createServer((socket) => socket.destroy());
  server.on("error", () => {
    // Another has the name, as `listening` says at once: a name is bound in the call.
  });
  server.listen({ path: `\0tessera-gpu/${uuid}`, exclusive: true });
  server.unref();
  return server.listening ? { [Symbol.dispose]: () => void server.close() } : undefined;
}
