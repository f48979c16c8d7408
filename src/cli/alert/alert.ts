/** `tessera alert`: rules that tell when something is wrong, and what has fired. */
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  type Alert,
  AlertKind,
  type AlertRule,
  AlertRuleSchema,
  ListAlertRulesResponseSchema,
  ListAlertsResponseSchema,
} from "../../client/index.ts";
import { keyWith } from "../../collections/key-with.ts";
import { type CloudActions, callCommand, deletion, group, option, repeatable } from "../command.ts";
import { parseDuration, shortTime } from "../durations.ts";
import { usageError } from "../failure.ts";
import { LIST_OPTIONS, type ListFlags, showPages } from "../lists.ts";
import { fields, moment } from "../output.ts";
import { type Table, table } from "../table.ts";
import { toDuration } from "../times.ts";
import { receiverCommand } from "./receiver.ts";

const NAME = ["<name>", "the rule's name"] as const;

const KINDS: Readonly<Record<string, AlertKind>> = {
  "oldest-task-waits": AlertKind.OLDEST_TASK_WAITS,
  failures: AlertKind.FAILURES,
  "deployment-degraded": AlertKind.DEPLOYMENT_DEGRADED,
  "worker-restarts": AlertKind.WORKER_RESTARTS,
  "disk-free": AlertKind.DISK_FREE,
  "token-ends": AlertKind.TOKEN_ENDS,
  "webhook-off": AlertKind.WEBHOOK_OFF,
  "budget-used": AlertKind.BUDGET_USED,
};

interface RuleFlags {
  readonly threshold?: string;
  readonly deployment?: readonly string[];
  readonly receiver?: readonly string[];
  readonly hold?: string;
}

const RULE_OPTIONS = [
  option("--threshold <number>", "seconds, percent, times or days, by the kind"),
  repeatable("--deployment <name>", "looks at this one only (default: at all)"),
  repeatable("--receiver <name>", "who is told (tessera alert receiver)"),
  option(
    "--hold <duration>",
    "how long it is true before it fires, and not before it clears (default: 2m)",
  ),
];

export const alertCommand = group(
  "alert",
  "Be told when something is wrong, and when it is over.",
  [
    listCommand,
    createCommand,
    updateCommand,
    silenceCommand,
    deleteCommand,
    historyCommand,
    receiverCommand,
  ],
);

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description: "List the alert rules of the organization, and how many of their alerts fire.",
    examples: ["tessera alert list"],
    run: async (call) => {
      const { organization, client } = call;
      const found = await client.alerts.listAlertRules({ organization });
      call.show(ListAlertRulesResponseSchema, found, ({ rules }) => ruleTable(rules));
    },
  });
}

function createCommand(actions: CloudActions): Command {
  return callCommand<RuleFlags>("create", actions, {
    description: "Make an alert rule.",
    arguments: [NAME, ["<kind>", `what it looks at: ${Object.keys(KINDS).join(", ")}`]],
    options: RULE_OPTIONS,
    examples: [
      "tessera alert create slow oldest-task-waits --threshold 300 --receiver ops",
      "tessera alert create failing failures --deployment summarizer --receiver ops --hold 5m",
    ],
    run: async (call, flags, [name = "", word = ""]) => {
      const { organization, client } = call;
      const kind = KINDS[word];
      if (kind === undefined) {
        throw usageError(`${JSON.stringify(word)} is not one of ${Object.keys(KINDS).join(", ")}`);
      }
      const rule = { name, kind, ...settingsOf(flags) };
      const created = await client.alerts.createAlertRule({ organization, rule });
      call.show(AlertRuleSchema, created, ruleText);
    },
  });
}

interface UpdateFlags extends RuleFlags {
  readonly enable?: boolean;
  readonly disable?: boolean;
}

function updateCommand(actions: CloudActions): Command {
  return callCommand<UpdateFlags>("update", actions, {
    description: "Change an alert rule. What fires of one that is disabled clears.",
    arguments: [NAME],
    options: [
      ...RULE_OPTIONS,
      option("--enable", "evaluate it").conflicts("disable"),
      option("--disable", "evaluate it no more"),
    ],
    examples: [
      "tessera alert update slow --threshold 600",
      "tessera alert update slow --receiver ops --receiver app",
    ],
    run: async (call, flags, [name = ""]) => {
      const { organization, client } = call;
      const { enable, disable } = flags;
      const settings = settingsOf(flags);
      const isSwitched = enable === true || disable === true;
      const paths = [...Object.keys(settings), ...(isSwitched ? ["disabled"] : [])];
      if (paths.length === 0) {
        throw usageError("nothing would change: give --threshold, --receiver or another option");
      }
      const updated = await client.alerts.updateAlertRule({
        organization,
        rule: { name, ...settings, disabled: disable === true },
        updateMask: { paths },
      });
      call.show(AlertRuleSchema, updated, ruleText);
    },
  });
}

function silenceCommand(actions: CloudActions): Command {
  return callCommand<{ readonly for?: string; readonly end?: boolean }>("silence", actions, {
    description: "Send nothing about a rule for a while. What still fires at the end is told then.",
    arguments: [NAME],
    options: [
      option("--for <duration>", "for how long (default: 1h)").conflicts("end"),
      option("--end", "end a silence now"),
    ],
    examples: ["tessera alert silence slow", "tessera alert silence slow --for 4h"],
    run: async (call, { for: text, end }, [name = ""]) => {
      const { organization, client } = call;
      const ms = end ? 0 : text === undefined ? undefined : parseDuration("--for", text);
      const silenced = await client.alerts.silenceAlertRule({
        ...{ organization, name },
        ...(ms !== undefined && { duration: toDuration(ms) }),
      });
      call.show(AlertRuleSchema, silenced, ruleText);
    },
  });
}

function deleteCommand(actions: CloudActions): Command {
  return deletion(actions, {
    description: "Delete an alert rule. What fires of it clears.",
    argument: NAME,
    thing: "alert rule",
    examples: ["tessera alert delete slow --yes"],
    remove: ({ client, organization }, name) =>
      client.alerts.deleteAlertRule({ organization, name }),
  });
}

interface HistoryFlags extends ListFlags {
  readonly rule?: string;
  readonly firing?: boolean;
  readonly pending?: boolean;
}

function historyCommand(actions: CloudActions): Command {
  return callCommand<HistoryFlags>("history", actions, {
    description: "List what fires and what has fired, the newest first. Kept for 30 days.",
    options: [
      option("--rule <name>", "only of this rule"),
      option("--firing", "only what fires"),
      option("--pending", "only what has not held for long enough to fire"),
      ...LIST_OPTIONS,
    ],
    examples: ["tessera alert history --firing", "tessera alert history --rule slow -o json"],
    run: async (call, flags) => {
      const { organization, client } = call;
      const { rule = "", firing = false, pending = false } = flags;
      await showPages(call, flags, {
        ...{ schema: ListAlertsResponseSchema, field: "alerts" },
        text: ({ alerts }) => alertTable(alerts),
        read: (page) => client.alerts.listAlerts({ organization, rule, firing, pending, ...page }),
      });
    },
  });
}

/** What the flags set, by the names of the fields. */
function settingsOf({ threshold, deployment, receiver, hold }: RuleFlags) {
  const bound = threshold === undefined ? undefined : Number(threshold);
  if (bound !== undefined && !(bound > 0)) {
    throw usageError(`--threshold ${JSON.stringify(threshold)} is no number above 0`);
  }
  return {
    ...(bound !== undefined && { threshold: bound }),
    ...(deployment && { deployments: [...deployment] }),
    ...(receiver && { receivers: [...receiver] }),
    ...(hold !== undefined && { hold: toDuration(parseDuration("--hold", hold)) }),
  };
}

function ruleTable(rules: readonly AlertRule[]): Table {
  return table(
    ["NAME", "CONDITION", "RECEIVERS", "STATE"],
    rules.map((one) => [one.name, one.condition, one.receivers.join(" "), stateText(one)]),
    { empty: "No alert rules: tessera alert create", drop: ["RECEIVERS"] },
  );
}

function stateText({ disabled, silencedUntil, ...rule }: AlertRule): string {
  if (disabled) {
    return "disabled";
  }
  const { firing, pending, evaluatedAt } = rule;
  const counts = [
    ...(firing > 0 ? [`firing (${firing})`] : []),
    ...(pending > 0 ? [`pending (${pending})`] : []),
  ];
  const state = counts.join(", ") || (evaluatedAt === undefined ? "new" : "ok");
  return silencedUntil === undefined ? state : `${state}, silenced until ${moment(silencedUntil)}`;
}

function ruleText(rule: AlertRule): string {
  const { hold, deployments, receivers } = rule;
  return fields([
    ["name", rule.name],
    ["kind", keyWith(KINDS, rule.kind) ?? ""],
    ["condition", rule.condition],
    ["deployments", deployments.join(" ") || "all"],
    ["receivers", receivers.join(" ") || "none"],
    ["hold", hold === undefined ? "" : shortTime(durationMs(hold))],
    ["state", stateText(rule)],
    ["evaluated", moment(rule.evaluatedAt)],
    ["created", `${moment(rule.createdAt)} by ${rule.createdBy}`],
  ]);
}

function alertTable(alerts: readonly Alert[]): Table {
  return table(
    ["RULE", "SUBJECT", "WHAT", "FIRED", "CLEARED"],
    alerts.map((one) => [
      one.rule,
      one.subject,
      one.text,
      moment(one.firedAt),
      one.clearedAt !== undefined ? moment(one.clearedAt) : one.firedAt ? "fires" : "pending",
    ]),
    { empty: "No alerts", drop: ["FIRED", "WHAT"] },
  );
}
