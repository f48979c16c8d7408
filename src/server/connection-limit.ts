/**
 * A limit of open connections, in total and per address. A connection beyond it is closed before
 * a byte of it is read, because each holds a file descriptor and memory of this process.
 *
 * An IPv6 address counts with its /64. A trusted proxy connects for many callers, so only the
 * total holds for it.
 */
import type { Socket } from "node:net";
import { addressGroup } from "../collections/networks.ts";

/** The bound that a refused connection was beyond. */
export type ConnectionBound = "total" | "address";

interface ConnectionLimitOptions {
  /** Open connections at most. */
  readonly total: number;
  /** Open connections of one address at most. */
  readonly perAddress: number;
  /** Whether an address is that of a trusted proxy. Default: none is. */
  readonly isProxy?: (address: string) => boolean;
  onRefused(bound: ConnectionBound, address: string): void;
}

export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions;
  readonly #byAddress = new Map<string, number>();
  #total = 0;

  constructor(options: ConnectionLimitOptions) {
    this.#options = options;
  }

  /** Counts a new connection until it closes. False: it is one too many, and closed. */
  admit(socket: Socket): boolean {
    const { total, perAddress, isProxy, onRefused } = this.#options;
    const { remoteAddress: address } = socket;
    if (address === undefined) {
      // It is gone already.
      socket.destroy();
      return false;
    }
    const group = isProxy?.(address) ? undefined : addressGroup(address);
    const open = group === undefined ? 0 : (this.#byAddress.get(group) ?? 0);
    if (this.#total >= total || open >= perAddress) {
      socket.destroy();
      onRefused(this.#total >= total ? "total" : "address", address);
      return false;
    }
    this.#count(group, 1);
    socket.once("close", () => this.#count(group, -1));
    return true;
  }

  #count(group: string | undefined, change: 1 | -1): void {
    this.#total += change;
    if (group === undefined) {
      return;
    }
    const open = (this.#byAddress.get(group) ?? 0) + change;
    if (open === 0) {
      this.#byAddress.delete(group);
    } else {
      this.#byAddress.set(group, open);
    }
  }
}
