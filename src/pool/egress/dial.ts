/** Outward connections: resolves a host once, judges each address, connects to the one judged. */
import { lookup } from "node:dns/promises";
import { connect, type Socket } from "node:net";
import { type Address, parseAddress } from "../../collections/networks.ts";
import type { EgressPolicy } from "./policy.ts";
import { type Asked, EgressFailedError, EgressRefusedError } from "./refusals.ts";

/** Returns the addresses of a name, in the order in which they are tried. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export interface DialOptions {
  readonly policy: EgressPolicy;
  readonly resolve?: Resolve | undefined;
}

/** How long one address may take to accept a connection. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Addresses of one name that are tried. */
const MAX_TRIED_ADDRESSES = 4;

/**
 * Opens a connection. Rejects with an `EgressRefusedError` or an
 * `EgressFailedError`; a name with both allowed and refused addresses is
 * connected to at its allowed ones.
 */
export async function dial(
  asked: Asked,
  { policy, resolve = resolveName }: DialOptions,
): Promise<Socket> {
  const admitted = policy.admit(asked);
  const found =
    admitted.kind === "address" ? [admitted.address] : await addressesOf(admitted.name, resolve);
  const faults = found.map((address) => policy.addressFault(asked, address));
  const allowed = found.filter((_, index) => faults[index] === undefined);
  const fault = faults.find((one) => one !== undefined);
  if (allowed.length === 0 && fault !== undefined) {
    throw new EgressRefusedError(fault);
  }
  let failure = new EgressFailedError(`${asked.host} has no address`);
  for (const address of allowed.slice(0, MAX_TRIED_ADDRESSES)) {
    try {
      return await open(address, asked.port);
    } catch (err) {
      const { code = "error" } = err as NodeJS.ErrnoException;
      const message = `${asked.host} port ${asked.port} could not be connected to: ${code}`;
      failure = new EgressFailedError(message, { cause: err });
    }
  }
  throw failure;
}

async function addressesOf(name: string, resolve: Resolve): Promise<Address[]> {
  try {
    const texts = await resolve(name);
    return texts.flatMap((text) => parseAddress(text) ?? []);
  } catch (err) {
    const { code = "error" } = err as NodeJS.ErrnoException;
    throw new EgressFailedError(`${name} could not be resolved: ${code}`, { cause: err });
  }
}

/** The addresses of a name, by the resolver of the operating system. */
export async function resolveName(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true });
  return found.map(({ address }) => address);
}

function open(address: Address, port: number): Promise<Socket> {
  return new Promise((settle, reject) => {
    const socket = connect({ host: address.toString(), port, allowHalfOpen: true, noDelay: true });
    const fail = (err: Error): void => {
      socket.destroy();
      reject(err);
    };
    const onTimeout = (): void => fail(Object.assign(new Error("timeout"), { code: "ETIMEDOUT" }));
    socket.setTimeout(CONNECT_TIMEOUT_MS, onTimeout);
    // It stays: an error between this function and the next listener must not end the node.
    socket.on("error", fail);
    socket.once("connect", () => {
      socket.setTimeout(0, onTimeout);
      settle(socket);
    });
  });
}
