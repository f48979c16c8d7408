/**
 * The evaluator of alert rules, on every node. A node takes the rules that are due, which makes them
 * due again for others a minute later, reads what they look at, and records it. So one node evaluates
 * a rule in each minute, and one that dies delays it by a minute; what fires is decided where it is
 * stored (`storage/hosting/alerts.ts`).
 *
 * A node looks only while there is a rule or an alert: without, it asks nothing, and hears of the
 * first rule by the change event that is written with it.
 */
import type { ChangeFeed } from "../../auth/change-feed.ts";
import type { Log } from "../../log/log.ts";
import type { AlertStorage, TakenRule } from "../../storage/hosting/alerts.ts";
import { Timer } from "../../time/timer.ts";
import { MAX_FINDINGS, Readings, type ReadingsOptions } from "./readings.ts";

/** How often a rule is evaluated. */
const ALERT_EVALUATION_INTERVAL_MS = 60_000;
/** Interval at which a node looks for rules that are due, while there are rules. */
const ALERT_POLL_INTERVAL_MS = 10_000;
/** Rules that a node takes at once. */
const MAX_TAKEN_ALERT_RULES = 200;
/** How long alerts are kept after they have cleared. */
const ALERT_RETENTION_MS = 30 * 86_400_000;
/** Interval at which old alerts are deleted. */
const ALERT_PRUNE_INTERVAL_MS = 3_600_000;
/** Old alerts that are deleted at once. */
const MAX_PRUNED_ALERTS = 1_000;

interface EvaluatorOptions extends ReadingsOptions {
  readonly hosting: ReadingsOptions["hosting"] &
    Pick<AlertStorage, "usesAlerts" | "takeAlertRules" | "recordAlerts" | "pruneAlerts">;
  readonly changes: Pick<ChangeFeed, "listen">;
  /** Where people reach the platform. */
  readonly platformUrl: string;
  readonly now: () => number;
  readonly newId: () => string;
  readonly log: Log;
}

export class Evaluator implements AsyncDisposable {
  readonly #options: EvaluatorOptions;
  readonly #timers: readonly Timer[];
  readonly #unlisten: () => void;
  readonly #stopping = new AbortController();
  /** Whether there may be something to look for. */
  #inUse = true;

  constructor(options: EvaluatorOptions) {
    const { changes, log } = options;
    this.#options = options;
    const failed = (err: unknown): void => log.error({ err }, "alert rules could not be read");
    this.#timers = [
      new Timer(ALERT_POLL_INTERVAL_MS, async () => this.#inUse && this.evaluate(), failed),
      new Timer(ALERT_PRUNE_INTERVAL_MS, async () => this.#inUse && this.#prune(), failed),
    ];
    this.#unlisten = changes.listen((forgotten) => {
      this.#inUse ||= forgotten.some(({ kind }) => kind === "deployment" || kind === "everything");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unlisten();
    this.#stopping.abort();
    await Promise.all(this.#timers.map((timer) => timer[Symbol.asyncDispose]()));
  }

  /**
   * Evaluates the rules that are due and no other node has taken. A node that stops leaves those that
   * it has not come to: they are due again in a minute.
   */
  async evaluate(): Promise<void> {
    const { hosting, newId, now } = this.#options;
    const { signal } = this.#stopping;
    const claim = newId();
    const rules = await hosting.takeAlertRules({
      ...{ claim, nowMs: now(), ttlMs: ALERT_EVALUATION_INTERVAL_MS },
      limit: MAX_TAKEN_ALERT_RULES,
    });
    if (rules.length === 0) {
      // Before the question: a change that comes while it is asked counts.
      this.#inUse = false;
      const uses = await hosting.usesAlerts({});
      this.#inUse ||= uses;
    }
    for (const [organizationId, ofOne] of Map.groupBy(rules, (rule) => rule.organizationId)) {
      const readings = new Readings(this.#options, { organizationId, nowMs: now(), signal });
      for (const rule of ofOne) {
        if (signal.aborted) {
          return;
        }
        await this.#record(rule, { claim, readings });
      }
    }
    if (rules.length === MAX_TAKEN_ALERT_RULES) {
      await this.evaluate();
    }
  }

  async #record(
    rule: TakenRule,
    { claim, readings }: { readonly claim: string; readonly readings: Readings },
  ): Promise<void> {
    const { hosting, newId, platformUrl, log } = this.#options;
    const { organizationId, ruleId, name, atMs } = rule;
    try {
      const found = await readings.of(rule);
      const changed = await hosting.recordAlerts({
        ...{ organizationId, ruleId, claim, nowMs: atMs, found, platformUrl },
        ...{ limit: MAX_FINDINGS, newId: newId() },
      });
      if (changed !== undefined && changed.fired + changed.cleared > 0) {
        log.info({ rule: name, organizationId, ...changed }, "an alert rule fired or cleared");
      }
    } catch (err) {
      // It is due again in a minute, and nothing has changed until then.
      if (!this.#stopping.signal.aborted) {
        log.error({ err, rule: name, organizationId }, "an alert rule could not be evaluated");
      }
    }
  }

  async #prune(): Promise<void> {
    const { hosting, now } = this.#options;
    const beforeMs = now() - ALERT_RETENTION_MS;
    while (
      (await hosting.pruneAlerts({ beforeMs, limit: MAX_PRUNED_ALERTS })) >= MAX_PRUNED_ALERTS
    ) {}
  }
}
