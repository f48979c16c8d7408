/** Connections of the platform itself to the host of a URL, judged as those of workers are. */
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { raceAbort } from "../../time/race.ts";
import { type DialOptions, dial } from "./dial.ts";
import { EgressFailedError } from "./refusals.ts";

interface DialUrlOptions extends DialOptions {
  readonly signal: AbortSignal;
  /** Silence after which a connection or its handshake is given up. */
  readonly idleMs: number;
}

/**
 * Opens a connection for an `http:` or `https:` URL, with TLS for the latter. Rejects with an
 * `EgressRefusedError`, an `EgressFailedError`, or the signal's reason.
 */
export async function dialUrl(url: URL, options: DialUrlOptions): Promise<Socket> {
  const { signal, idleMs, ...dialing } = options;
  const { host, port } = targetOf(url);
  const connecting = dial({ host, port }, dialing);
  const socket = await raceAbort(connecting, signal).catch((err: unknown) => {
    connecting.then(
      (late) => late.destroy(),
      () => {},
    );
    throw err;
  });
  if (url.protocol !== "https:") {
    // A request listens to it, and sets none for a socket that it did not make.
    return socket.setTimeout(idleMs);
  }
  const secure = connectTls({ socket, servername: host, ALPNProtocols: ["http/1.1"] });
  const leave = (): void => void secure.destroy(new Error("nobody waits for it"));
  signal.addEventListener("abort", leave);
  try {
    await new Promise((settle, reject) => {
      secure.once("secureConnect", settle);
      secure.once("error", reject);
      secure.setTimeout(idleMs, () => reject(new Error("no handshake")));
    });
    return secure;
  } catch (err) {
    secure.destroy();
    signal.throwIfAborted();
    const { code = (err as Error).message } = err as NodeJS.ErrnoException;
    throw new EgressFailedError(`${url.host} makes no secure connection: ${code}`, { cause: err });
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

/** The host of a URL, an IPv6 address without its brackets, and its port, or that of its protocol. */
export function targetOf({ hostname, port, protocol }: URL): {
  readonly host: string;
  readonly port: number;
} {
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port) || (protocol === "https:" ? 443 : 80),
  };
}
