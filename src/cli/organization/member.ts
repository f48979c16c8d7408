/** `tessera member`: the people of an organization. */
import { create } from "@bufbuild/protobuf";
import { Argument, type Command } from "commander";
import {
  InviteMemberResponseSchema,
  ListInvitationsResponseSchema,
  ListMembersResponseSchema,
  type Member,
  MemberSchema,
  Role,
} from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, group, option } from "../command.ts";
import { contextPath, environmentContext, removeContext } from "../context.ts";
import { CliError, ExitCode } from "../failure.ts";
import { LIST_OPTIONS, type ListFlags, type ListPage, mentionMore, readPages } from "../lists.ts";
import { fields, moment } from "../output.ts";
import {
  SESSION_NOTE,
  SESSION_OPTIONS,
  type SessionFlags,
  withSession,
  withTokenOrSession,
} from "../session.ts";
import { table } from "../table.ts";
import { ROLES, roleText } from "./role.ts";

const MEMBER = ["<member>", "their e-mail address or id"] as const;

const invitationsCommand = group("invitations", "See and withdraw invitations that are open.", [
  listInvitationsCommand,
  withdrawCommand,
]);

export const memberCommand = group("member", "See and change who belongs to an organization.", [
  listCommand,
  inviteCommand,
  invitationsCommand,
  setRoleCommand,
  removeCommand,
  leaveCommand,
]);

function listCommand(actions: CloudActions): Command {
  return callCommand<ListFlags>("list", actions, {
    description: "List the members, by e-mail address.",
    options: LIST_OPTIONS,
    examples: ["tessera member list"],
    run: async (call, flags) => {
      const { items, nextPageToken } = await readMembers(call, flags);
      const list = create(ListMembersResponseSchema, { members: [...items], nextPageToken });
      call.show(ListMembersResponseSchema, list, ({ members }) =>
        table(
          ["E-MAIL", "NAME", "ROLE", "JOINED", "ID"],
          members.map(({ email, displayName, role, joinedAt, userId }) => [
            email,
            displayName,
            roleText(role),
            moment(joinedAt),
            userId,
          ]),
          { empty: "No members", drop: ["ID", "JOINED", "NAME"] },
        ),
      );
      mentionMore(call, nextPageToken);
    },
  });
}

async function readMembers(
  { client, organization }: CommandRun,
  flags: Pick<ListFlags, "limit" | "pageToken">,
): Promise<ListPage<Member>> {
  return await readPages(flags, async (page) => {
    const { members, nextPageToken } = await client.organizations.listMembers({
      organization,
      ...page,
    });
    return { items: members, nextPageToken };
  });
}

interface InviteFlags extends SessionFlags {
  readonly role: string;
}

function inviteCommand(actions: CloudActions): Command {
  return callCommand<InviteFlags>("invite", actions, {
    description: `Invite a person. A platform with a mail server sends them the link; any other shows it once, on standard output. ${SESSION_NOTE}`,
    arguments: [["<email>", "the address they sign in with"]],
    options: [
      option("--role <role>", "what they may do").choices(Object.keys(ROLES)).default("member"),
      ...SESSION_OPTIONS,
    ],
    examples: ["tessera member invite ada@example.com --role admin"],
    run: async (call, flags, [email = ""]) => {
      const role = ROLES[flags.role] ?? Role.UNSPECIFIED;
      const invited = await withTokenOrSession(call, flags, (client, organization, options) =>
        client.organizations.inviteMember({ organization, email, role }, options),
      );
      const until = moment(invited.invitation?.expiresAt);
      call.done(
        invited.mailed
          ? `Invited ${email} until ${until}. The link was sent by mail to ${invited.invitation?.email}`
          : `Invited ${email} until ${until}. Anyone with this link can join, so send it to them only:\n`,
      );
      call.show(InviteMemberResponseSchema, invited, ({ url, mailed }) =>
        mailed ? undefined : url,
      );
    },
  });
}

function listInvitationsCommand(actions: CloudActions): Command {
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

function setRoleCommand(actions: CloudActions): Command {
  const command = callCommand<SessionFlags>("set-role", actions, {
    description: "Change what a member may do. Asks for your password to make somebody an admin.",
    arguments: [MEMBER],
    options: SESSION_OPTIONS,
    examples: ["tessera member set-role ada@example.com admin"],
    run: async (call, flags, [member = "", text = ""]) => {
      const { userId } = await findMember(call, member);
      const role = ROLES[text] ?? Role.UNSPECIFIED;
      const changed = await withTokenOrSession(call, flags, (client, organization, options) =>
        client.organizations.updateMember({ organization, userId, role }, options),
      );
      call.show(MemberSchema, changed, (shown) =>
        fields([
          ["e-mail", shown.email],
          ["name", shown.displayName],
          ["role", roleText(shown.role)],
          ["joined", moment(shown.joinedAt)],
          ["id", shown.userId],
        ]),
      );
    },
  });
  return command.addArgument(new Argument("<role>").choices(Object.keys(ROLES)));
}

function removeCommand(actions: CloudActions): Command {
  return callCommand("remove", actions, {
    description: "Remove a member. Their personal tokens end for good.",
    arguments: [MEMBER],
    asks: true,
    examples: ["tessera member remove ada@example.com"],
    run: async (call, _flags, [text = ""]) => {
      const { userId, email } = await findMember(call, text);
      await call.insist(`Remove ${email}? Their personal tokens end for good.`);
      await call.client.organizations.removeMember({ organization: call.organization, userId });
      call.done(`Removed ${email}`);
    },
  });
}

function leaveCommand(actions: CloudActions): Command {
  return callCommand<SessionFlags>("leave", actions, {
    description: `Leave the organization. Your personal tokens end for good. ${SESSION_NOTE}`,
    options: SESSION_OPTIONS,
    asks: true,
    examples: ["tessera member leave --organization acme"],
    run: async (call, flags) => {
      const principal = await call.principal();
      const organization = call.organization || principal.organization;
      await call.insist(`Leave ${organization}? Your personal tokens in it end for good.`);
      await withSession(call, flags, (client, options) =>
        client.organizations.leaveOrganization({ organization }, options),
      );
      call.done(`Left ${organization}`);
      if (principal.organization === organization && principal.userId !== "") {
        await forgetEnded(call);
      }
    },
  });
}

/** Removes the stored login when its personal token has ended with the membership. */
async function forgetEnded(call: CommandRun): Promise<void> {
  if (environmentContext(call.environment) === undefined) {
    await removeContext(contextPath(call.environment));
    call.terminal.say("You are logged out: your login was by a token of this organization.");
  }
}

/** Members that a command searches for a name; in larger organizations a member is named by id. */
const MAX_SEARCHED_MEMBERS = 10_000;

async function findMember(call: CommandRun, text: string): Promise<Member> {
  const wanted = text.toLowerCase();
  const { items } = await readMembers(call, { limit: MAX_SEARCHED_MEMBERS });
  const found = items.find(
    ({ email, userId }) => email.toLowerCase() === wanted || userId === text,
  );
  if (found === undefined) {
    throw new CliError(`no member has the address or id ${JSON.stringify(text)}`, {
      exitCode: ExitCode.notFound,
      hint: "tessera member list shows them",
    });
  }
  return found;
}
