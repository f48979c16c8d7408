/** `tessera member invitations`: lists open invitations. */
import type { Command } from "commander";
import { ListInvitationsResponseSchema } from "../../client/index.ts";
import { type CloudActions, callCommand, group } from "../command.ts";
import { CliError, ExitCode } from "../failure.ts";
import { moment } from "../output.ts";
import { table } from "../table.ts";
import { roleText } from "./role.ts";

export const invitationsCommand = group(
  "invitations",
  "See and withdraw invitations that are open.",
  [listCommand, withdrawCommand],
);

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description: "List the invitations that are open.",
    examples: ["tessera member invitations list"],
    run: async (call) => {
      const { organization } = call;
      const list = await call.client.organizations.listInvitations({ organization });
      call.show(ListInvitationsResponseSchema, list, ({ invitations }) =>
        table(
          ["E-MAIL", "ROLE", "INVITED BY", "EXPIRES", "ID"],
          invitations.map(({ email, role, createdBy, expiresAt, invitationId }) => [
            email,
            roleText(role),
            createdBy,
            moment(expiresAt),
            invitationId,
          ]),
          { empty: "No open invitations", drop: ["ID", "INVITED BY"] },
        ),
      );
    },
  });
}

function withdrawCommand(actions: CloudActions): Command {
  return callCommand("withdraw", actions, {
    description: "Withdraw an invitation; its link stops at once.",
    arguments: [["<invitation>", "the e-mail address that it is for, or its id"]],
    examples: ["tessera member invitations withdraw ada@example.com"],
    run: async (call, _flags, [text = ""]) => {
      const { organization } = call;
      const { organizations } = call.client;
      const { invitations } = await organizations.listInvitations({ organization });
      const found = invitations.find(
        ({ email, invitationId }) =>
          email.toLowerCase() === text.toLowerCase() || invitationId === text,
      );
      if (found === undefined) {
        throw new CliError(`no open invitation is for ${JSON.stringify(text)}`, {
          exitCode: ExitCode.notFound,
          hint: "tessera member invitations list shows them",
        });
      }
      const { invitationId, email } = found;
      await organizations.deleteInvitation({ organization, invitationId });
      call.done(`Withdrew the invitation of ${email}`);
    },
  });
}
