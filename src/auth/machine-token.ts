/**
 * The token of a machine: with it, a machine that a launcher has started joins workers to one
 * deployment, for hours at most. It is signed, not stored: a thousand machines an hour leave no
 * rows behind, and none is in the way of the organization's tokens.
 *
 * It is no right of its own but that of the launcher's token, which is looked up at each use as
 * it stands now. So it ends with that, needs the same networks, and opens no other deployment. It
 * also ends with the value that it was made with: who has found that, and made tokens with it, has
 * nothing left when it is rotated.
 */
import { problem } from "../errors.ts";
import { launches } from "./permissions.ts";
import type { TokenPrincipal } from "./principal.ts";
import { SignedText } from "./signed-text.ts";
import { NO_ACCESS } from "./token-rules.ts";

const MACHINE_TOKEN_PREFIX = "tsrl_";

/** For secret scanners. A match is such a token if its version is known. */
export const MACHINE_TOKEN_PATTERN = /\btsrl_[\w-]{136}(?![\w-])/;

/** Longest life of a machine's token. */
export const MAX_MACHINE_LIFETIME_MS = 7 * 86_400_000;

/** What the token of a machine says. */
interface SaidByMachine {
  readonly organizationId: string;
  /** The launcher's token. */
  readonly tokenId: string;
  /** Of the value of that token with which it was made. */
  readonly generation: number;
  readonly deploymentId: string;
  /** The id of the machine, a UUID that its launcher chose. */
  readonly machine: string;
  readonly expiresAtMs: number;
}

/** Makes and reads the tokens of machines. */
export class MachineTokens {
  readonly #text: SignedText;

  /** @param keys the keys of the installation for a purpose, the current one first */
  constructor(keys: (purpose: string) => readonly Uint8Array[]) {
    this.#text = new SignedText({
      prefix: MACHINE_TOKEN_PREFIX,
      purpose: "tessera machine token v1",
      keys,
    });
  }

  make(said: SaidByMachine): string {
    const { organizationId, tokenId, generation, deploymentId, machine, expiresAtMs } = said;
    const ids = [organizationId, tokenId, deploymentId, machine] as const;
    return this.#text.sign({ kind: generation, expiresAtMs, ids });
  }

  /** Undefined for what is no token, was altered, or comes from another platform. */
  read(value: string): SaidByMachine | undefined {
    const read = this.#text.read(value);
    if (read === undefined) {
      return undefined;
    }
    const [organizationId, tokenId, deploymentId, machine] = read.ids;
    const { kind: generation, expiresAtMs } = read;
    return { organizationId, tokenId, generation, deploymentId, machine, expiresAtMs };
  }

  /** The number of characters of each. */
  get length(): number {
    return this.#text.length;
  }
}

/**
 * Who a machine is, by its token and that of its launcher as it stands now. Throws TOKEN_INVALID
 * when that starts no machines for the deployment any more.
 */
export function machinePrincipal(said: SaidByMachine, launcher: TokenPrincipal): TokenPrincipal {
  const { deploymentId, machine, expiresAtMs } = said;
  if (!launches(launcher, deploymentId)) {
    throw problem(
      "TOKEN_INVALID",
      "the token of this machine has ended: that of its launcher is not for the deployment any more",
    );
  }
  const name = launcher.deployments.find((each) => each.deploymentId === deploymentId)?.name ?? "";
  return {
    ...launcher,
    access: {
      ...NO_ACCESS,
      worker: true,
    },
    allDeployments: false,
    deployments: [{ deploymentId, name }],
    expiresAtMs: Math.min(expiresAtMs, launcher.expiresAtMs),
    machine,
  };
}
