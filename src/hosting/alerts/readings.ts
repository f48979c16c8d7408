/**
 * What alert rules look at, of one organization and one moment: read once, however many rules ask.
 * Of tasks it is the counters and tallies that are kept anyway, and no task.
 */
import type { KeptHistory } from "../../metrics/history/kept.ts";
import { NO_TASKS, sumOf } from "../../metrics/history/task-tally.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import { startOfDay } from "../../storage/days.ts";
import type { AlertStorage, Finding, TakenRule } from "../../storage/hosting/alerts.ts";
import type { BudgetStorage } from "../../storage/hosting/budgets.ts";
import type { NodeStorage } from "../../storage/hosting/nodes.ts";
import type { Storage } from "../../storage/storage.ts";

/** The time over which failures and restarts are counted. */
const ALERT_WINDOW_MS = 600_000;
/** Failed tasks below which no share of them fires: one failure of one call is no trend. */
const MIN_FAILURES = 3;
/** Deployments that are read at once. */
const MAX_DEPLOYMENTS_PER_READING = 1_000;
/** What one rule finds; the rest is left out. */
export const MAX_FINDINGS = 1_000;
const DAY_MS = 86_400_000;

export interface ReadingsOptions {
  readonly accounts: Pick<Organizations, "listDeployments">;
  readonly storage: Pick<Storage, "queueStates">;
  readonly hosting: Pick<AlertStorage, "listEndingTokens" | "listWebhooksOff"> &
    Pick<BudgetStorage, "listBudgets"> &
    Pick<NodeStorage, "describeDeployments" | "listNodes">;
  readonly history: Pick<KeptHistory, "read" | "tasks">;
  /** Why a task is queued, in a sentence for developers; undefined where it is not known here. */
  readonly whyQueued: (deploymentId: string, task: DueTask) => string | undefined;
}

/** The task of a deployment that is due longest. */
interface DueTask {
  readonly endpoint: string;
  readonly dueAtMs: number;
}

/** The findings of rules that were taken at the same moment. */
export class Readings {
  readonly #options: ReadingsOptions;
  readonly #organizationId: string;
  readonly #nowMs: number;
  readonly #signal: AbortSignal;
  #deployments: Promise<readonly DeploymentRecord[]> | undefined;
  #oldest: Promise<ReadonlyMap<string, DueTask>> | undefined;
  #failures: Promise<ReadonlyMap<string, { failed: number; ended: number }>> | undefined;
  #troubles: Promise<ReadonlyMap<string, string>> | undefined;
  /** By deployment; of all of the organization under the empty id. */
  readonly #restarts = new Map<string, Promise<number>>();
  #nodes: ReturnType<NodeStorage["listNodes"]> | undefined;

  constructor(
    options: ReadingsOptions,
    {
      organizationId,
      nowMs,
      signal,
    }: { readonly organizationId: string; readonly nowMs: number; readonly signal: AbortSignal },
  ) {
    this.#options = options;
    this.#organizationId = organizationId;
    this.#nowMs = nowMs;
    this.#signal = signal;
  }

  /** What the rule finds now, by subject; at most `MAX_FINDINGS`. Rejects where it cannot be read. */
  async of(rule: TakenRule): Promise<readonly Finding[]> {
    const found = await this.#find(rule);
    return found
      .sort((one, other) => (one.subject < other.subject ? -1 : 1))
      .slice(0, MAX_FINDINGS);
  }

  #find(rule: TakenRule): Promise<Finding[]> {
    switch (rule.kind) {
      case "oldest_task_waits":
        return this.#oldestTaskWaits(rule);
      case "failures":
        return this.#failing(rule);
      case "deployment_degraded":
        return this.#degraded(rule);
      case "worker_restarts":
        return this.#restarting(rule);
      case "disk_free":
        return this.#disks(rule);
      case "token_ends":
        return this.#tokens(rule);
      case "webhook_off":
        return this.#webhooks(rule);
      case "budget_used":
        return this.#budgets(rule);
    }
  }

  async #oldestTaskWaits(rule: TakenRule): Promise<Finding[]> {
    const deployments = await this.#of(rule);
    this.#oldest ??= this.#readOldest();
    const oldest = await this.#oldest;
    return deployments.flatMap(({ deploymentId, name }) => {
      const task = oldest.get(deploymentId);
      const waitsMs = this.#nowMs - (task?.dueAtMs ?? this.#nowMs);
      if (task === undefined || waitsMs <= rule.threshold * 1_000) {
        return [];
      }
      const why = this.#options.whyQueued(deploymentId, task);
      const text = `the oldest task waits for ${ageText(waitsMs)}`;
      return [ofDeployment(deploymentId, name, why === undefined ? text : `${text}: ${why}`)];
    });
  }

  async #failing(rule: TakenRule): Promise<Finding[]> {
    const deployments = await this.#of(rule);
    this.#failures ??= this.#readFailures();
    const failures = await this.#failures;
    return deployments.flatMap(({ deploymentId, name }) => {
      const { failed, ended } = failures.get(deploymentId) ?? { failed: 0, ended: 0 };
      const percent = ended === 0 ? 0 : (100 * failed) / ended;
      const text = `${failed} of ${ended} tasks failed in ten minutes (${rounded(percent)} %)`;
      const isTrend = failed >= MIN_FAILURES && percent > rule.threshold;
      return isTrend ? [ofDeployment(deploymentId, name, text)] : [];
    });
  }

  async #degraded(rule: TakenRule): Promise<Finding[]> {
    const deployments = await this.#of(rule);
    this.#troubles ??= this.#readTroubles();
    const troubles = await this.#troubles;
    return deployments.flatMap(({ deploymentId, name }) => {
      const text = troubles.get(deploymentId);
      return text === undefined ? [] : [ofDeployment(deploymentId, name, text)];
    });
  }

  async #restarting(rule: TakenRule): Promise<Finding[]> {
    // Most often nothing was restarted anywhere, which one read tells.
    if ((await this.#restartsOf("")) <= rule.threshold) {
      return [];
    }
    const found: Finding[] = [];
    for (const { deploymentId, name } of await this.#of(rule)) {
      const restarts = await this.#restartsOf(deploymentId);
      if (restarts > rule.threshold) {
        const text = `workers were restarted ${restarts} times in ten minutes`;
        found.push(ofDeployment(deploymentId, name, text));
      }
    }
    return found;
  }

  async #disks({ threshold }: TakenRule): Promise<Finding[]> {
    this.#nodes ??= this.#options.hosting.listNodes({ nowMs: this.#nowMs });
    return (await this.#nodes).flatMap(({ nodeId, facts }) => {
      const { freeDiskBytes = 0, diskBytes = 0 } = facts ?? {};
      const percent = diskBytes === 0 ? 100 : (100 * freeDiskBytes) / diskBytes;
      const text = `${rounded(percent)} % of its disk is free`;
      return percent < threshold
        ? [{ subject: `node/${nodeId}`, name: `node ${nodeId}`, text }]
        : [];
    });
  }

  async #tokens({ threshold, createdAtMs }: TakenRule): Promise<Finding[]> {
    const tokens = await this.#options.hosting.listEndingTokens({
      organizationId: this.#organizationId,
      // What had ended when the rule was made is history.
      afterMs: createdAtMs,
      beforeMs: this.#nowMs + threshold * DAY_MS,
      limit: MAX_FINDINGS,
    });
    return tokens.map(({ tokenId, name, expiresAtMs }) => ({
      subject: `token/${tokenId}`,
      name: `token ${name}`,
      text: `it ${expiresAtMs <= this.#nowMs ? "has ended" : "ends"} at ${clockText(expiresAtMs)}`,
    }));
  }

  async #webhooks({ deployments: chosen }: TakenRule): Promise<Finding[]> {
    const found = await this.#options.hosting.listWebhooksOff({
      organizationId: this.#organizationId,
      nowMs: this.#nowMs,
      limit: MAX_FINDINGS,
    });
    return found
      .filter(({ deployment }) => chosen.length === 0 || chosen.includes(deployment))
      .map(({ webhookId, name, deployment, disabledReason }) => ({
        subject: `webhook/${webhookId}`,
        name: deployment === "" ? `receiver ${name}` : `webhook ${name} of ${deployment}`,
        text:
          disabledReason === undefined
            ? "it is failing, so its deliveries wait"
            : `it is disabled: ${disabledReason}`,
      }));
  }

  /** What is used of each budget beyond the bound; and, as a finding of its own, that all is. */
  async #budgets({ threshold, deployments: chosen }: TakenRule): Promise<Finding[]> {
    const budgets = await this.#options.hosting.listBudgets({
      organizationId: this.#organizationId,
      nowMs: this.#nowMs,
    });
    return budgets
      .filter(({ deployment }) => chosen.length === 0 || chosen.includes(deployment))
      .flatMap(({ budgetId, name: budget, used, amount, measure, period, fromDay, toDay }) => {
        const percent = amount === 0 ? 100 : (100 * used) / amount;
        const name = `budget ${budget}`;
        // Of each period apart: what fires in the one before clears when it is over.
        const subject = `budget/${budgetId}/${fromDay}`;
        const end = clockText(startOfDay(toDay));
        const found: Finding[] = [];
        if (percent >= threshold) {
          const share = `${rounded(percent)} % of ${amount} ${measure} a ${period} are used`;
          found.push({ subject, name, text: share });
        }
        if (percent >= 100) {
          const text = `it is spent: what it bounds is refused until ${end}`;
          found.push({ subject: `${subject}/spent`, name, text });
        }
        return found;
      });
  }

  /** The deployments that a rule looks at. */
  async #of({ deployments: chosen }: TakenRule): Promise<readonly DeploymentRecord[]> {
    this.#deployments ??= this.#readDeployments();
    const all = await this.#deployments;
    return chosen.length === 0 ? all : all.filter(({ name }) => chosen.includes(name));
  }

  async #readDeployments(): Promise<readonly DeploymentRecord[]> {
    const organizationId = this.#organizationId;
    const found: DeploymentRecord[] = [];
    let after: string | undefined;
    do {
      const page = await this.#options.accounts.listDeployments({
        ...{ organizationId, limit: MAX_DEPLOYMENTS_PER_READING },
        ...(after !== undefined && { after }),
      });
      found.push(...page.items);
      after = page.next;
    } while (after !== undefined);
    return found;
  }

  /** The oldest task of each deployment that has one. */
  async #readOldest(): Promise<ReadonlyMap<string, DueTask>> {
    const deployments = (await this.#deployments) ?? [];
    const oldest = new Map<string, DueTask>();
    if (deployments.length > 0) {
      const states = await this.#options.storage.queueStates({
        deploymentIds: deployments.map(({ deploymentId }) => deploymentId),
        nowMs: this.#nowMs,
      });
      for (const { deploymentId, endpoint, oldestDueAtMs: dueAtMs } of states) {
        const before = oldest.get(deploymentId)?.dueAtMs ?? Number.POSITIVE_INFINITY;
        if (dueAtMs !== undefined && dueAtMs < before) {
          oldest.set(deploymentId, { endpoint, dueAtMs });
        }
      }
    }
    return oldest;
  }

  /** What is the matter with each deployment that is degraded or has failed. */
  async #readTroubles(): Promise<ReadonlyMap<string, string>> {
    const deployments = (await this.#deployments) ?? [];
    const states = await this.#options.hosting.describeDeployments({
      ...{ organizationId: this.#organizationId, deployments, nowMs: this.#nowMs },
    });
    const troubles = new Map<string, string>();
    for (const [index, { status, reason }] of states.entries()) {
      if (status === "degraded" || status === "failed") {
        const is = status === "failed" ? "has failed" : "is degraded";
        const [why = ""] = reason.split("\n");
        const text = why === "" ? `it ${is}` : `it ${is}: ${why.slice(0, 500)}`;
        troubles.set(deployments[index]?.deploymentId ?? "", text);
      }
    }
    return troubles;
  }

  async #readFailures(): Promise<ReadonlyMap<string, { failed: number; ended: number }>> {
    const { tally } = await this.#options.history.tasks({
      organizationId: this.#organizationId,
      windowMs: ALERT_WINDOW_MS,
      nowMs: this.#nowMs,
    });
    const ids = new Set([...tally.entries()].map(([deploymentId]) => deploymentId));
    return new Map(
      [...ids].map((id) => {
        const { failed, succeeded } = [...tally.of(id).values()].reduce(sumOf, NO_TASKS);
        return [id, { failed, ended: failed + succeeded }];
      }),
    );
  }

  #restartsOf(deploymentId: string): Promise<number> {
    const known = this.#restarts.get(deploymentId) ?? this.#readRestarts(deploymentId);
    this.#restarts.set(deploymentId, known);
    return known;
  }

  async #readRestarts(deploymentId: string): Promise<number> {
    const nowMs = this.#nowMs;
    const { series, stepMs } = await this.#options.history.read({
      organizationId: this.#organizationId,
      deployment: deploymentId === "" ? undefined : { deploymentId },
      measures: ["worker_restarts"],
      selectors: [],
      range: { startMs: nowMs - ALERT_WINDOW_MS, endMs: nowMs, maxPoints: 0, nowMs },
      signal: this.#signal,
    });
    const rates = series.flatMap(({ values }) => values.filter((value) => !Number.isNaN(value)));
    return Math.round(rates.reduce((sum, rate) => sum + (rate * stepMs) / 1_000, 0));
  }
}

function ofDeployment(deploymentId: string, name: string, text: string): Finding {
  return { subject: `deployment/${deploymentId}`, name: `deployment ${name}`, text };
}

function rounded(percent: number): string {
  return String(Math.round(percent * 10) / 10);
}

/** A time in the unit that fits, such as `7 min`. */
function ageText(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 2) {
    return `${Math.floor(ms / 1_000)} s`;
  }
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}

/** A time to the minute, such as `2027-01-20 08:00 UTC`. */
function clockText(ms: number): string {
  const text = new Date(ms).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;
}
