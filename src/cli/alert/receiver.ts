/** `tessera alert receiver`: who hears of alerts, and what they answered. */
import type { Command } from "commander";
import {
  type AlertReceiver,
  AlertReceiverKind,
  AlertReceiverSchema,
  type AlertReceiverWithSecret,
  AlertReceiverWithSecretSchema,
  AlertTransition,
  ListAlertDeliveriesResponseSchema,
  ListAlertReceiversResponseSchema,
  type WebhookDelivery,
} from "../../client/index.ts";
import { keyWith } from "../../collections/key-with.ts";
import {
  type CloudActions,
  type CommandRun,
  callCommand,
  deletion,
  group,
  option,
} from "../command.ts";
import { usageError } from "../failure.ts";
import { LIST_OPTIONS, type ListFlags, showPages } from "../lists.ts";
import { fields, moment } from "../output.ts";
import { type Table, table } from "../table.ts";
import {
  answerText,
  DELIVERY_STATE,
  deliveryState,
  deliveryStateOf,
  GRACE,
  graceOf,
  ROTATE_DESCRIPTION,
  SWITCH_OPTIONS,
  type SwitchFlags,
  showAnswer,
  stateText,
} from "../webhook/webhook.ts";

const NAME = ["<name>", "the receiver's name"] as const;

const KINDS: Readonly<Record<string, AlertReceiverKind>> = {
  webhook: AlertReceiverKind.WEBHOOK,
  mail: AlertReceiverKind.MAIL,
  slack: AlertReceiverKind.SLACK,
};

const EVENTS: Readonly<Record<string, AlertTransition>> = {
  "alert.firing": AlertTransition.FIRING,
  "alert.cleared": AlertTransition.CLEARED,
};

export const receiverCommand = group("receiver", "See and change who hears of alerts.", [
  listCommand,
  createCommand,
  updateCommand,
  rotateCommand,
  testCommand,
  deleteCommand,
  deliveriesCommand,
  redeliverCommand,
]);

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description: "List the receivers of alerts.",
    examples: ["tessera alert receiver list"],
    run: async (call) => {
      const { organization, client } = call;
      const found = await client.alerts.listAlertReceivers({ organization });
      call.show(ListAlertReceiversResponseSchema, found, ({ receivers }) =>
        receiverTable(receivers),
      );
    },
  });
}

function createCommand(actions: CloudActions): Command {
  return callCommand("create", actions, {
    description:
      "Make a receiver of alerts. The secret of the signatures of a webhook is shown once.",
    arguments: [
      NAME,
      ["<kind>", `how it is told: ${Object.keys(KINDS).join(", ")}`],
      ["<address>", "a URL, or an e-mail address"],
    ],
    examples: [
      "tessera alert receiver create app webhook https://example.com/alerts",
      "tessera alert receiver create ops mail ops@example.com",
      "tessera alert receiver create chat slack https://hooks.slack.com/services/T0/B0/x",
    ],
    run: async (call, _flags, [name = "", word = "", address = ""]) => {
      const { organization, client } = call;
      const kind = KINDS[word];
      if (kind === undefined) {
        throw usageError(`${JSON.stringify(word)} is not one of ${Object.keys(KINDS).join(", ")}`);
      }
      const receiver = { name, kind, address };
      const created = await client.alerts.createAlertReceiver({ organization, receiver });
      call.show(AlertReceiverWithSecretSchema, created, secretText);
    },
  });
}

interface UpdateFlags extends SwitchFlags {
  readonly address?: string;
}

function updateCommand(actions: CloudActions): Command {
  return callCommand<UpdateFlags>("update", actions, {
    description:
      "Change a receiver of alerts. What waits goes to the new address; the secret of its signatures stays.",
    arguments: [NAME],
    options: [
      option("--address <address>", "a URL, or an e-mail address, as its kind has it"),
      ...SWITCH_OPTIONS,
    ],
    examples: [
      "tessera alert receiver update app --address https://example.com/other",
      "tessera alert receiver update app --enable",
    ],
    run: async (call, { address, enable, disable }, [name = ""]) => {
      const { organization, client } = call;
      const paths = [
        ...(address === undefined ? [] : ["address"]),
        ...(enable === true || disable === true ? ["disabled"] : []),
      ];
      if (paths.length === 0) {
        throw usageError("nothing would change: give --address, --enable or --disable");
      }
      const updated = await client.alerts.updateAlertReceiver({
        organization,
        receiver: { name, disabled: disable === true, ...(address !== undefined && { address }) },
        updateMask: { paths },
      });
      call.show(AlertReceiverSchema, updated, receiverText);
    },
  });
}

function rotateCommand(actions: CloudActions): Command {
  return callCommand<{ readonly grace?: string }>("rotate", actions, {
    description: ROTATE_DESCRIPTION,
    arguments: [NAME],
    options: [GRACE],
    examples: ["tessera alert receiver rotate app"],
    run: async (call, { grace }, [name = ""]) => {
      const { organization, client } = call;
      const rotated = await client.alerts.rotateAlertReceiverSecret({
        ...{ organization, name },
        ...graceOf(grace),
      });
      call.show(AlertReceiverWithSecretSchema, rotated, secretText);
    },
  });
}

function testCommand(actions: CloudActions): Command {
  return callCommand("test", actions, {
    description: "Send a message of the type alert.test, and show what the receiver answers.",
    arguments: [NAME],
    examples: ["tessera alert receiver test app"],
    run: async (call, _flags, [name = ""]) => {
      const { organization, client } = call;
      const sent = await client.alerts.testAlertReceiver({ organization, name });
      await showNamed(call, sent.id);
    },
  });
}

function deleteCommand(actions: CloudActions): Command {
  return deletion(actions, {
    description: "Delete a receiver of alerts that no rule has. What waits for it is not sent.",
    argument: NAME,
    thing: "receiver of alerts",
    examples: ["tessera alert receiver delete app --yes"],
    remove: ({ client, organization }, name) =>
      client.alerts.deleteAlertReceiver({ organization, name }),
  });
}

interface DeliveriesFlags extends ListFlags {
  readonly receiver?: string;
  readonly state?: string;
}

function deliveriesCommand(actions: CloudActions): Command {
  return callCommand<DeliveriesFlags>("deliveries", actions, {
    description:
      "List what receivers were told, and what they answered, the newest first. Kept for three days.",
    options: [option("--receiver <name>", "only of this one"), DELIVERY_STATE, ...LIST_OPTIONS],
    examples: ["tessera alert receiver deliveries --receiver app --state failed"],
    run: async (call, flags) => {
      const { organization, client } = call;
      const { receiver = "" } = flags;
      const state = deliveryStateOf(flags.state);
      await showPages(call, flags, {
        ...{ schema: ListAlertDeliveriesResponseSchema, field: "deliveries" },
        text: deliveryTable,
        read: (page) =>
          client.alerts.listAlertDeliveries({ organization, receiver, state, ...page }),
      });
    },
  });
}

function redeliverCommand(actions: CloudActions): Command {
  return callCommand("redeliver", actions, {
    description: "Send a delivery again, under the id that it has, and show what is answered.",
    arguments: [["<delivery>", "its id, from `tessera alert receiver deliveries`"]],
    examples: [
      "tessera alert receiver redeliver 019aa51c-0000-7000-8000-000000000000-0000-firing-app",
    ],
    run: async (call, _flags, [deliveryId = ""]) => {
      const { organization, client } = call;
      await client.alerts.redeliverAlert({ organization, deliveryId });
      await showNamed(call, deliveryId);
    },
  });
}

/** Shows the answer to a delivery, by its id. */
function showNamed(call: CommandRun, deliveryId: string): Promise<void> {
  const { organization, client } = call;
  return showAnswer(call, {
    read: () => client.alerts.getAlertDelivery({ organization, deliveryId }),
    eventText: ({ alert }) => eventText(alert),
  });
}

function receiverTable(receivers: readonly AlertReceiver[]): Table {
  return table(
    ["NAME", "KIND", "ADDRESS", "STATE", "WAITING"],
    receivers.map((one) => [
      one.name,
      keyWith(KINDS, one.kind) ?? "",
      one.address,
      stateText(one),
      String(one.waiting),
    ]),
    { empty: "No receivers: tessera alert receiver create", drop: ["WAITING"] },
  );
}

function receiverText(receiver: AlertReceiver): string {
  return fields([
    ["name", receiver.name],
    ["kind", keyWith(KINDS, receiver.kind) ?? ""],
    ["address", receiver.address],
    ["state", stateText(receiver)],
    ["created", `${moment(receiver.createdAt)} by ${receiver.createdBy}`],
  ]);
}

function secretText({ receiver, secret }: AlertReceiverWithSecret): string {
  const shown = receiver === undefined ? "" : receiverText(receiver);
  return secret === ""
    ? shown
    : `${shown}\nsecret  ${secret}\n\nKeep the secret now: it is not shown again.`;
}

function eventText(told: AlertTransition): string {
  return keyWith(EVENTS, told) ?? "alert.test";
}

function deliveryTable({ deliveries }: { readonly deliveries: readonly WebhookDelivery[] }): Table {
  return table(
    ["DELIVERY", "RECEIVER", "EVENT", "STATE", "CREATED", "ANSWER"],
    deliveries.map((one) => [
      one.id,
      one.webhook,
      eventText(one.alert),
      deliveryState(one),
      moment(one.createdAt),
      answerText(one),
    ]),
    { empty: "No deliveries", drop: ["CREATED", "ANSWER"] },
  );
}
