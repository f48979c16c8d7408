/** A tunnel: two sockets, each with what the other sends, until both directions have ended. */
import type { Socket } from "node:net";

/**
 * Connects two sockets. Back-pressure and half-closed directions pass through; an
 * error of one, or silence of both for `idleMs`, ends both.
 */
export function tunnel(one: Socket, other: Socket, idleMs: number): void {
  const end = (): void => {
    clearTimeout(idle);
    one.destroy();
    other.destroy();
  };
  const idle = setTimeout(end, idleMs);
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on("error", end);
    from.on("data", () => idle.refresh());
    from.once("close", () => {
      // A direction that has ended in good order is passed on by `pipe`.
      if (!from.readableEnded || to.destroyed) {
        end();
      }
    });
    from.pipe(to);
  }
  if (one.destroyed || other.destroyed) {
    end();
  }
}
