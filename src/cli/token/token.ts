/** `tessera token`: manages API tokens. */
import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { ListTokensResponseSchema } from "../../client/index.ts";
import { type CloudActions, callCommand, group, option } from "../command.ts";
import { contextPath, environmentContext, removeContext } from "../context.ts";
import { LIST_OPTIONS, mentionMore } from "../lists.ts";
import { createCommand, updateCommand } from "./edit.ts";
import { findToken, type ListTokensFlags, readTokens, TOKEN } from "./find.ts";
import { KINDS } from "./flags.ts";
import { revealCommand, rotateCommand } from "./value.ts";
import { showToken, tokenTable } from "./view.ts";

export const tokenCommand = group("token", "Make, see, change and delete API tokens.", [
  createCommand,
  listCommand,
  getCommand,
  updateCommand,
  rotateCommand,
  revealCommand,
  deleteCommand,
]);

function listCommand(actions: CloudActions): Command {
  return callCommand<ListTokensFlags>("list", actions, {
    description: "List the tokens that you may see, newest first.",
    options: [
      option("--kind <kind>", "only tokens of this kind").choices(Object.keys(KINDS)),
      ...LIST_OPTIONS,
    ],
    examples: ["tessera token list --kind organization", "tessera token list --output json"],
    run: async (call, flags) => {
      const { items, nextPageToken } = await readTokens(call, flags);
      const list = create(ListTokensResponseSchema, { tokens: [...items], nextPageToken });
      call.show(ListTokensResponseSchema, list, ({ tokens }) =>
        tokenTable(tokens, call.clock.now()),
      );
      mentionMore(call, nextPageToken);
    },
  });
}

function getCommand(actions: CloudActions): Command {
  return callCommand("get", actions, {
    description: "Show one token, without its value.",
    arguments: [TOKEN],
    examples: ["tessera token get laptop"],
    run: async (call, _flags, [token = ""]) => showToken(call, await findToken(call, token)),
  });
}

function deleteCommand(actions: CloudActions): Command {
  return callCommand("delete", actions, {
    description: "Delete a token; its value stops at once.",
    arguments: [TOKEN],
    asks: true,
    examples: ["tessera token delete laptop", "tessera token delete laptop --yes"],
    run: async (call, _flags, [token = ""]) => {
      const { tokenId, name } = await findToken(call, token);
      const own = (await call.principal()).tokenId === tokenId;
      const what = own ? "the token of your own login" : `token ${name} (${tokenId})`;
      await call.insist(`Delete ${what}?`);
      await call.client.tokens.deleteToken({ organization: call.organization, tokenId });
      call.done(`Deleted token ${name} (${tokenId})`);
      if (own && environmentContext(call.environment) === undefined) {
        await removeContext(contextPath(call.environment));
        call.terminal.say("You are logged out: your login was by this token.");
      }
    },
  });
}
