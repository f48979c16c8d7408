/** Notes in the audit log that a machine was given the secrets of a deployment. */

import { actorOf, type Caller, deed, type Sources } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";

/** A machine that registers again and again is noted once in this time. */
const NOTED_AGAIN_MS = 3_600_000;

/** Machines that are remembered as noted; the one that was noted longest ago is forgotten first. */
const MAX_NOTED = 10_000;

export interface HandedSecretsOptions extends Sources {
  readonly accounts: Pick<Organizations, "recordAuditEvent">;
}

interface Handing {
  readonly caller: Caller;
  readonly organizationId: string;
  readonly deploymentId: string;
  /** The deployment's name. */
  readonly deployment: string;
  readonly revision: number;
  readonly hostname: string;
  readonly secrets: readonly string[];
}

export class HandedSecrets {
  readonly #options: HandedSecretsOptions;
  /** When a machine was noted, by what it was given with which credential. */
  readonly #notedMs = new Map<string, number>();

  constructor(options: HandedSecretsOptions) {
    this.#options = options;
  }

  /** Resolves when it is noted: secrets are never handed out without. */
  async note(handing: Handing): Promise<void> {
    const { caller, organizationId, deploymentId, deployment, ...facts } = handing;
    const by = actorOf(caller);
    const event = deed(by, this.#options);
    const { id = by.id, name = by.name } = by.token ?? {};
    const key = JSON.stringify([id, deploymentId, facts]);
    const beforeMs = this.#notedMs.get(key);
    if (beforeMs !== undefined && event.nowMs - beforeMs < NOTED_AGAIN_MS) {
      return;
    }
    await this.#options.accounts.recordAuditEvent({
      ...event,
      organizationId,
      action: "worker.secrets",
      subjectId: deploymentId,
      subject: deployment,
      details: {
        secrets: facts.secrets.join(" "),
        revision: String(facts.revision),
        machine: facts.hostname,
        token: name,
      },
    });
    this.#notedMs.delete(key);
    this.#notedMs.set(key, event.nowMs);
    const [oldest] = this.#notedMs.keys();
    if (oldest !== undefined && this.#notedMs.size > MAX_NOTED) {
      this.#notedMs.delete(oldest);
    }
  }
}
