/** `tessera org`: manages organizations. */
import type { Command } from "commander";
import {
  ListOrganizationsResponseSchema,
  type Organization,
  OrganizationSchema,
} from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, group, option } from "../command.ts";
import { usageError } from "../failure.ts";
import { fields, moment } from "../output.ts";
import { SESSION_NOTE, SESSION_OPTIONS, type SessionFlags, withSession } from "../session.ts";
import { table } from "../table.ts";
import { roleText } from "./role.ts";

const DISPLAY_NAME = option("--display-name <text>", "its name for people");
const NAME = ["[name]", "the organization (default: the token's own)"] as const;

export const orgCommand = group("org", "Make, see and change organizations.", [
  createCommand,
  listCommand,
  getCommand,
  updateCommand,
  askForMonitoringCommand,
]);

interface CreateFlags extends SessionFlags {
  readonly displayName?: string;
}

function createCommand(actions: CloudActions): Command {
  return callCommand<CreateFlags>("create", actions, {
    description: `Make an organization, and become its admin. ${SESSION_NOTE}`,
    arguments: [["<name>", "lower case letters, digits and hyphens; it never changes"]],
    options: [DISPLAY_NAME, ...SESSION_OPTIONS],
    examples: ['tessera org create acme --display-name "Acme Ltd"'],
    run: async (call, flags, [name = ""]) => {
      const { displayName = "" } = flags;
      const created = await withSession(call, flags, (client, options) =>
        client.organizations.createOrganization({ name, displayName }, options),
      );
      showOrganization(call, created);
      call.done(
        `To work in it, log in to it: tessera cloud login --endpoint ${call.context.endpoint} --organization ${created.name}`,
      );
    },
  });
}

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description: "List your organizations; a token has exactly one.",
    examples: ["tessera org list"],
    run: async (call) => {
      const list = await call.client.organizations.listOrganizations({});
      call.show(ListOrganizationsResponseSchema, list, ({ organizations }) =>
        table(
          ["NAME", "DISPLAY NAME", "ROLE", "CREATED"],
          organizations.map(({ name, displayName, role, createdAt }) => [
            name,
            displayName,
            roleText(role),
            moment(createdAt),
          ]),
          { empty: "No organizations", drop: ["CREATED"] },
        ),
      );
    },
  });
}

function getCommand(actions: CloudActions): Command {
  return callCommand("get", actions, {
    description: "Show one organization.",
    arguments: [NAME],
    examples: ["tessera org get"],
    run: async (call, _flags, [name]) => {
      const organization = name ?? (await call.organizationName());
      showOrganization(call, await call.client.organizations.getOrganization({ organization }));
    },
  });
}

interface UpdateFlags {
  readonly displayName?: string;
  readonly reveal?: boolean;
}

function updateCommand(actions: CloudActions): Command {
  return callCommand<UpdateFlags>("update", actions, {
    description: "Change an organization.",
    arguments: [NAME],
    options: [
      DISPLAY_NAME,
      option("--reveal", "admins can see the values of organization tokens again"),
      option("--no-reveal", "they cannot; the values that are kept are erased"),
    ],
    examples: ['tessera org update --display-name "Acme Ltd"', "tessera org update --no-reveal"],
    run: async (call, { displayName, reveal }, [given]) => {
      const paths = [
        ...(displayName === undefined ? [] : ["display_name"]),
        ...(reveal === undefined ? [] : ["reveal_enabled"]),
      ];
      if (paths.length === 0) {
        throw usageError("say what to change: --display-name, --reveal or --no-reveal");
      }
      const name = given ?? (await call.organizationName());
      const changed = await call.client.organizations.updateOrganization({
        organization: {
          name,
          ...(displayName !== undefined && { displayName }),
          ...(reveal !== undefined && { revealEnabled: reveal }),
        },
        updateMask: { paths },
      });
      showOrganization(call, changed);
    },
  });
}

function askForMonitoringCommand(actions: CloudActions): Command {
  return callCommand("ask-for-monitoring", actions, {
    description: "Ask the operator of the platform to enable monitoring tokens.",
    arguments: [NAME],
    examples: ["tessera org ask-for-monitoring"],
    run: async (call, _flags, [name]) => {
      const organization = name ?? (await call.organizationName());
      const asking = await call.client.organizations.askForMonitoring({ organization });
      showOrganization(call, asking);
      call.done(
        asking.monitoringEnabled
          ? `Monitoring tokens are enabled for ${organization} already`
          : "The operator sees it in the console, and with tessera admin organizations",
      );
    },
  });
}

/** Whether monitoring tokens can be made, or who has asked for them. */
function monitoringText({
  monitoringEnabled,
  monitoringAskedAt,
  monitoringAskedBy,
}: Organization): string {
  if (monitoringEnabled) {
    return "on";
  }
  return monitoringAskedAt === undefined
    ? "off"
    : `asked for by ${monitoringAskedBy}, ${moment(monitoringAskedAt)}`;
}

function showOrganization(call: CommandRun, organization: Organization): void {
  call.show(OrganizationSchema, organization, (shown) =>
    fields([
      ["name", shown.name],
      ["display name", shown.displayName],
      ["your role", roleText(shown.role)],
      ["monitoring tokens", monitoringText(shown)],
      ["values shown again", shown.revealEnabled ? "on" : "off"],
      ["created", moment(shown.createdAt)],
    ]),
  );
}
