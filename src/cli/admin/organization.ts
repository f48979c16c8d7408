/** The commands of `tessera admin` about organizations. */
import type { Command } from "commander";
import type { Administration } from "../../app/operate/administration.ts";
import type { Flags } from "../../config/settings.ts";
import { examplesText, jsonOption, outputOption } from "../command.ts";
import type { OutputFormat } from "../output.ts";
import { table } from "../table.ts";
import { Terminal } from "../terminal.ts";
import { type AdminActions, adminOf, open } from "./command.ts";

export function organizationsCommand(actions: AdminActions): Command {
  return adminOf(actions, "organizations", "List the organizations of the platform.")
    .addOption(outputOption())
    .addOption(jsonOption())
    .addHelpText("after", examplesText(["tessera admin organizations --output json"]))
    .action(async (flags: Flags & { readonly output: OutputFormat }) => {
      await using administration = await open(actions, flags);
      const listed = await administration.organizations();
      const terminal = new Terminal(actions.streams);
      if (flags.output === "json") {
        const json = listed.map((one) => ({
          name: one.name,
          display_name: one.displayName,
          members: one.members,
          monitoring_enabled: one.monitoringEnabled,
          ...(one.monitoringAsked && {
            monitoring_asked_at: new Date(one.monitoringAsked.atMs).toISOString(),
            monitoring_asked_by: one.monitoringAsked.by,
          }),
          invitation_links_enabled: one.invitationLinksEnabled,
          created_at: new Date(one.createdAtMs).toISOString(),
        }));
        terminal.answer(JSON.stringify(json, null, 2));
        return;
      }
      const rows = listed.map((one) => [
        one.name,
        one.displayName,
        String(one.members),
        monitoringText(one),
        one.invitationLinksEnabled ? "yes" : "no",
        new Date(one.createdAtMs).toISOString().slice(0, 10),
      ]);
      const columns = ["NAME", "DISPLAY NAME", "MEMBERS", "MONITORING", "LINKS", "CREATED"];
      terminal.answer(table(columns, rows, { empty: "No organizations", drop: ["CREATED"] }));
    });
}

type Listed = Awaited<ReturnType<Administration["organizations"]>>[number];

function monitoringText({ monitoringEnabled, monitoringAsked: asked }: Listed): string {
  if (monitoringEnabled) {
    return "yes";
  }
  return asked === undefined ? "no" : `asked for by ${asked.by}`;
}

export function monitoringCommand(actions: AdminActions, verb: "enable" | "disable"): Command {
  return adminOf(
    actions,
    verb,
    verb === "enable"
      ? "Let an organization's admins make monitoring tokens."
      : "Stop an organization's monitoring tokens, and the making of others.",
  )
    .requiredOption("--organization <name>", "name of the organization")
    .addHelpText("after", examplesText([`tessera admin monitoring ${verb} --organization acme`]))
    .action(async (flags: Flags & { readonly organization: string }) => {
      await using administration = await open(actions, flags);
      const { name } = await administration.setMonitoring(flags.organization, verb === "enable");
      new Terminal(actions.streams).say(`Monitoring tokens are ${verb}d for ${name}`);
    });
}

export function createOrganizationCommand(actions: AdminActions): Command {
  return adminOf(actions, "create-organization", "Make an organization, whatever the setting.")
    .argument("<name>", "lower case letters, digits and hyphens; it never changes")
    .requiredOption("--admin <address>", "e-mail address of its admin, who has an account")
    .option("--display-name <text>", "its name for people")
    .addHelpText(
      "after",
      examplesText(["tessera admin create-organization globex --admin grace@example.com"]),
    )
    .action(
      async (
        name: string,
        flags: Flags & { readonly admin: string; readonly displayName?: string },
      ) => {
        await using administration = await open(actions, flags);
        const { admin: adminEmail, displayName } = flags;
        const made = await administration.createOrganization({
          name,
          adminEmail,
          ...(displayName !== undefined && { displayName }),
        });
        new Terminal(actions.streams).say(
          `Made the organization ${made.name} with its admin ${adminEmail}`,
        );
      },
    );
}

export function invitationLinksCommand(actions: AdminActions, verb: "enable" | "disable"): Command {
  return adminOf(
    actions,
    verb,
    verb === "enable"
      ? "Show an organization's admins the links of invitations, also for people without an account."
      : "Show them for people with an account only: anyone who sees another can take that address.",
  )
    .requiredOption("--organization <name>", "name of the organization")
    .addHelpText(
      "after",
      examplesText([`tessera admin invitation-links ${verb} --organization acme`]),
    )
    .action(async (flags: Flags & { readonly organization: string }) => {
      await using administration = await open(actions, flags);
      const { name } = await administration.setInvitationLinks(
        flags.organization,
        verb === "enable",
      );
      new Terminal(actions.streams).say(`Links of invitations are ${verb}d for ${name}`);
    });
}
