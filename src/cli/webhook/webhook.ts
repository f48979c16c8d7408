/** `tessera webhook`: addresses that are told how the tasks of a deployment end. */
import { type Duration, durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  type AlertReceiver,
  ListWebhookDeliveriesResponseSchema,
  ListWebhooksResponseSchema,
  type Webhook,
  type WebhookDelivery,
  WebhookDeliverySchema,
  WebhookDeliveryState,
  WebhookEvent,
  WebhookSchema,
  type WebhookWithSecret,
  WebhookWithSecretSchema,
} from "../../client/index.ts";
import { keyWith } from "../../collections/key-with.ts";
import {
  type CloudActions,
  type CommandRun,
  callCommand,
  group,
  option,
  repeatable,
} from "../command.ts";
import { parseDuration } from "../durations.ts";
import { CliError, usageError } from "../failure.ts";
import { LIST_OPTIONS, type ListFlags, showPages } from "../lists.ts";
import { fields, moment } from "../output.ts";
import { plain } from "../plain.ts";
import { type Table, table } from "../table.ts";
import { toDuration } from "../times.ts";

const DEPLOYMENT = ["<deployment>", "the deployment's name"] as const;
const NAME = ["<name>", "the webhook's name"] as const;

/** How long `test` and `redeliver` wait for the answer of a receiver, which has 15 s. */
const MAX_ANSWER_WAIT_MS = 25_000;
/** Pause between two looks at a delivery. */
const ANSWER_LOOK_INTERVAL_MS = 300;

const EVENTS: Readonly<Record<string, WebhookEvent>> = {
  "task.success": WebhookEvent.TASK_SUCCESS,
  "task.failure": WebhookEvent.TASK_FAILURE,
  "task.cancelled": WebhookEvent.TASK_CANCELLED,
};

const STATES: Readonly<Record<string, WebhookDeliveryState>> = {
  waiting: WebhookDeliveryState.WAITING,
  delivered: WebhookDeliveryState.DELIVERED,
  failed: WebhookDeliveryState.FAILED,
};

export const DELIVERY_STATE = option("--state <state>", "only in this state").choices(
  Object.keys(STATES),
);

/** What the flag asks for. */
export function deliveryStateOf(word = ""): WebhookDeliveryState {
  return STATES[word] ?? WebhookDeliveryState.UNSPECIFIED;
}

/** Whether a webhook, or a receiver of alerts, gets messages. */
export interface SwitchFlags {
  readonly enable?: boolean;
  readonly disable?: boolean;
}

export const SWITCH_OPTIONS = [
  option("--enable", "send what has waited, and what comes").conflicts("disable"),
  option("--disable", "send and keep nothing"),
];

interface WebhookFlags {
  readonly event?: readonly string[];
  readonly endpointName?: string;
  readonly namedOnly?: boolean;
}

const WEBHOOK_OPTIONS = [
  repeatable("--event <event>", `send only this event: ${Object.keys(EVENTS).join(", ")}`),
  option("--endpoint-name <endpoint>", "send only events of tasks of this endpoint"),
  option("--named-only", "send only events of tasks whose submit names it"),
];

export const ROTATE_DESCRIPTION =
  "Give a webhook a new secret, which is shown once. Until the grace period is over, messages have a signature of each.";

export const GRACE = option(
  "--grace <duration>",
  "how long the secret before signs, too (default: 24h; 0s: no more)",
);

/** The field of a rotation that the flag sets. */
export function graceOf(text: string | undefined): { grace?: Pick<Duration, "seconds" | "nanos"> } {
  return text === undefined ? {} : { grace: toDuration(parseDuration("--grace", text)) };
}

export const webhookCommand = group(
  "webhook",
  "Tell a server of yours how the tasks of a deployment end.",
  [
    listCommand,
    createCommand,
    updateCommand,
    deleteCommand,
    rotateCommand,
    testCommand,
    deliveriesCommand,
    redeliverCommand,
  ],
);

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description: "List the webhooks of a deployment.",
    arguments: [DEPLOYMENT],
    examples: ["tessera webhook list summarizer"],
    run: async (call, _flags, [deployment = ""]) => {
      const { organization, client } = call;
      const found = await client.webhooks.listWebhooks({ organization, deployment });
      call.show(ListWebhooksResponseSchema, found, ({ webhooks }) => webhookTable(webhooks));
    },
  });
}

function createCommand(actions: CloudActions): Command {
  return callCommand<WebhookFlags>("create", actions, {
    description:
      "Register an address that is told how tasks end. The secret of its signatures is shown once.",
    arguments: [
      DEPLOYMENT,
      NAME,
      ["<url>", "where messages are sent, such as https://example.com/told"],
    ],
    options: WEBHOOK_OPTIONS,
    examples: [
      "tessera webhook create summarizer app https://example.com/told",
      "tessera webhook create summarizer pager https://example.com/failed --event task.failure",
      "tessera webhook create summarizer app https://example.com/told -o json | jq -r .secret",
    ],
    run: async (call, flags, [deployment = "", name = "", url = ""]) => {
      const { organization, client } = call;
      const webhook = { name, url, ...settingsOf(flags) };
      const created = await client.webhooks.createWebhook({ organization, deployment, webhook });
      call.show(WebhookWithSecretSchema, created, secretText);
    },
  });
}

interface UpdateFlags extends WebhookFlags, SwitchFlags {
  readonly url?: string;
}

function updateCommand(actions: CloudActions): Command {
  return callCommand<UpdateFlags>("update", actions, {
    description: "Change a webhook. What waits goes to the new address.",
    arguments: [DEPLOYMENT, NAME],
    options: [
      option("--url <url>", "where messages are sent"),
      ...WEBHOOK_OPTIONS,
      option("--no-named-only", "send events of all tasks"),
      ...SWITCH_OPTIONS,
    ],
    examples: [
      "tessera webhook update summarizer app --url https://example.com/other",
      "tessera webhook update summarizer app --enable",
    ],
    run: async (call, flags, [deployment = "", name = ""]) => {
      const { organization, client } = call;
      const { url, enable, disable, namedOnly } = flags;
      const isSwitched = enable === true || disable === true;
      const settings = settingsOf(flags);
      const paths = [
        ...(url === undefined ? [] : ["url"]),
        ...(settings.events === undefined ? [] : ["events"]),
        ...(settings.endpoint === undefined ? [] : ["endpoint"]),
        ...(namedOnly === undefined ? [] : ["named_only"]),
        ...(isSwitched ? ["disabled"] : []),
      ];
      if (paths.length === 0) {
        throw usageError("nothing would change: give --url, --event, --enable or another option");
      }
      const updated = await client.webhooks.updateWebhook({
        ...{ organization, deployment },
        webhook: {
          name,
          ...settings,
          ...(url !== undefined && { url }),
          disabled: disable === true,
        },
        updateMask: { paths },
      });
      call.show(WebhookSchema, updated, webhookText);
    },
  });
}

function deleteCommand(actions: CloudActions): Command {
  return callCommand("delete", actions, {
    description: "Delete a webhook. What waits for it is not sent.",
    arguments: [DEPLOYMENT, NAME],
    asks: true,
    examples: ["tessera webhook delete summarizer app --yes"],
    run: async (call, _flags, [deployment = "", name = ""]) => {
      const { organization, client } = call;
      await call.insist(`Delete webhook ${name} of ${deployment}?`);
      await client.webhooks.deleteWebhook({ organization, deployment, name });
      call.done(`Deleted webhook ${name} of ${deployment}`);
    },
  });
}

function rotateCommand(actions: CloudActions): Command {
  return callCommand<{ readonly grace?: string }>("rotate", actions, {
    description: ROTATE_DESCRIPTION,
    arguments: [DEPLOYMENT, NAME],
    options: [GRACE],
    examples: [
      "tessera webhook rotate summarizer app",
      "tessera webhook rotate summarizer app --grace 0s",
    ],
    run: async (call, { grace }, [deployment = "", name = ""]) => {
      const { organization, client } = call;
      const rotated = await client.webhooks.rotateWebhookSecret({
        ...{ organization, deployment, name },
        ...graceOf(grace),
      });
      call.show(WebhookWithSecretSchema, rotated, secretText);
    },
  });
}

function testCommand(actions: CloudActions): Command {
  return callCommand("test", actions, {
    description: "Send a message of the type webhook.test, and show what the receiver answers.",
    arguments: [DEPLOYMENT, NAME],
    examples: ["tessera webhook test summarizer app"],
    run: async (call, _flags, [deployment = "", name = ""]) => {
      const { organization, client } = call;
      const sent = await client.webhooks.testWebhook({ organization, deployment, name });
      await showNamed(call, deployment, sent.id);
    },
  });
}

function redeliverCommand(actions: CloudActions): Command {
  return callCommand("redeliver", actions, {
    description: "Send a delivery again, under the id that it has, and show what is answered.",
    arguments: [DEPLOYMENT, ["<delivery>", "its id, from `tessera webhook deliveries`"]],
    examples: ["tessera webhook redeliver summarizer 019aa51c-0000-8000-8000-000000000000-app"],
    run: async (call, _flags, [deployment = "", deliveryId = ""]) => {
      const { organization, client } = call;
      await client.webhooks.redeliverWebhook({ organization, deployment, deliveryId });
      await showNamed(call, deployment, deliveryId);
    },
  });
}

interface DeliveriesFlags extends ListFlags {
  readonly webhook?: string;
  readonly task?: string;
  readonly state?: string;
}

function deliveriesCommand(actions: CloudActions): Command {
  return callCommand<DeliveriesFlags>("deliveries", actions, {
    description:
      "List what webhooks were told, and what they answered, the newest first. Kept for three days.",
    arguments: [DEPLOYMENT],
    options: [
      option("--webhook <name>", "only of this one"),
      option("--task <id>", "only of this task"),
      DELIVERY_STATE,
      ...LIST_OPTIONS,
    ],
    examples: [
      "tessera webhook deliveries summarizer --state failed",
      "tessera webhook deliveries summarizer --task 019aa51c-0000-8000-8000-000000000000 -o json",
    ],
    run: async (call, flags, [deployment = ""]) => {
      const { organization, client } = call;
      const { webhook = "", task: taskId = "" } = flags;
      await showPages(call, flags, {
        ...{ schema: ListWebhookDeliveriesResponseSchema, field: "deliveries" },
        text: deliveryTable,
        read: (page) =>
          client.webhooks.listWebhookDeliveries({
            ...{ organization, deployment, webhook, taskId, ...page },
            state: deliveryStateOf(flags.state),
          }),
      });
    },
  });
}

function settingsOf({ event, endpointName, namedOnly }: WebhookFlags) {
  const unknown = event?.find((one) => EVENTS[one] === undefined);
  if (unknown !== undefined) {
    throw usageError(`--event ${unknown} is not one of ${Object.keys(EVENTS).join(", ")}`);
  }
  return {
    ...(event && { events: event.flatMap((one) => EVENTS[one] ?? []) }),
    ...(endpointName !== undefined && { endpoint: endpointName }),
    ...(namedOnly !== undefined && { namedOnly }),
  };
}

/** Shows the answer to a delivery of the deployment, by its id. */
function showNamed(call: CommandRun, deployment: string, deliveryId: string): Promise<void> {
  const { organization, client } = call;
  return showAnswer(call, {
    read: () => client.webhooks.getWebhookDelivery({ organization, deployment, deliveryId }),
    eventText: ({ event }) => eventText(event),
  });
}

function webhookTable(webhooks: readonly Webhook[]): Table {
  return table(
    ["NAME", "URL", "EVENTS", "STATE", "WAITING"],
    webhooks.map((one) => [
      one.name,
      one.url,
      one.events.map(eventText).join(" "),
      stateText(one),
      String(one.waiting),
    ]),
    { empty: "No webhooks: tessera webhook create", drop: ["EVENTS"] },
  );
}

function webhookText(webhook: Webhook): string {
  return fields([
    ["name", webhook.name],
    ["url", webhook.url],
    ["events", webhook.events.map(eventText).join(" ")],
    ["endpoint", webhook.endpoint || "all"],
    ["tasks", webhook.namedOnly ? "whose submit names it" : "all"],
    ["state", stateText(webhook)],
    ["two signatures until", moment(webhook.rotatedUntil)],
    ["created", `${moment(webhook.createdAt)} by ${webhook.createdBy}`],
  ]);
}

function secretText({ webhook, secret }: WebhookWithSecret): string {
  const shown = webhook === undefined ? "" : `${webhookText(webhook)}\n`;
  return `${shown}secret  ${secret}\n\nKeep the secret now: it is not shown again.`;
}

function eventText(event: WebhookEvent): string {
  return keyWith(EVENTS, event) ?? "webhook.test";
}

function deliveryTable({ deliveries }: { readonly deliveries: readonly WebhookDelivery[] }): Table {
  return table(
    ["DELIVERY", "WEBHOOK", "EVENT", "STATE", "ATTEMPTS", "CREATED", "ANSWER"],
    deliveries.map((one) => [
      one.id,
      one.webhook,
      eventText(one.event),
      deliveryState(one),
      String(one.attempts),
      moment(one.createdAt),
      answerText(one),
    ]),
    { empty: "No deliveries", drop: ["CREATED", "ATTEMPTS", "ANSWER"] },
  );
}

/** Shows a delivery once its next attempt has ended; fails where the receiver did not take it. */
export async function showAnswer(
  call: CommandRun,
  {
    read,
    eventText,
  }: { read(): Promise<WebhookDelivery>; eventText(delivery: WebhookDelivery): string },
): Promise<void> {
  const { clock } = call;
  using interruption = call.terminal.streams.interruption();
  const untilMs = clock.now() + MAX_ANSWER_WAIT_MS;
  let found = await read();
  while (found.attempts === 0 && clock.now() < untilMs) {
    await clock.wait(ANSWER_LOOK_INTERVAL_MS, interruption.signal);
    found = await read();
  }
  call.show(WebhookDeliverySchema, found, () => deliveryText(found, eventText(found)));
  if (found.state !== WebhookDeliveryState.DELIVERED) {
    throw new CliError(plain(`it was not delivered: ${answerText(found) || "no answer yet"}`));
  }
}

/** Whether messages are sent to it. */
export function stateText({
  disabled,
  disabledReason,
  pausedUntil,
  failures,
}: Webhook | AlertReceiver): string {
  if (disabled) {
    return `disabled: ${disabledReason}`;
  }
  if (pausedUntil !== undefined) {
    return `failing (${failures}), next attempt ${moment(pausedUntil)}`;
  }
  return failures > 0 ? `failing (${failures})` : "ok";
}

export function deliveryState({ state }: WebhookDelivery): string {
  return (WebhookDeliveryState[state] ?? "").toLowerCase();
}

/** The last answer in a few words. */
export function answerText({ answers }: WebhookDelivery): string {
  const last = answers.at(-1);
  return last === undefined ? "" : last.error || `${last.status} ${last.text.slice(0, 60)}`.trim();
}

function deliveryText(delivery: WebhookDelivery, event: string): string {
  return fields([
    ["delivery", delivery.id],
    ["event", event],
    ["state", deliveryState(delivery)],
    ["attempts", String(delivery.attempts)],
    ...delivery.answers.map(
      ({ time, took, status, text, error }, index) =>
        [
          index === 0 ? "answers" : " ",
          `${time === undefined ? "" : new Date(timestampMs(time)).toISOString()} ${error || `${status} ${text.slice(0, 100)}`} (${took === undefined ? 0 : durationMs(took)} ms)`,
        ] as const,
    ),
  ]);
}
