/** Finds tokens: lists them in pages, or resolves one by id or name. */

import { type Token, TokenKind } from "../../client/index.ts";
import { nearest } from "../../collections/nearest.ts";
import type { CommandRun } from "../command.ts";
import { CliError, ExitCode, usageError } from "../failure.ts";
import { type ListFlags, type ListPage, readPages } from "../lists.ts";
import { plain } from "../plain.ts";
import { KINDS } from "./flags.ts";

/** The argument of commands about one token. */
export const TOKEN = ["<token>", "its id, or its name where only one has it"] as const;

export interface ListTokensFlags extends ListFlags {
  readonly kind?: string;
}

export async function readTokens(
  { client, organization }: CommandRun,
  flags: Pick<ListTokensFlags, "limit" | "pageToken" | "kind">,
): Promise<ListPage<Token>> {
  const kind = KINDS[flags.kind ?? ""] ?? TokenKind.UNSPECIFIED;
  return await readPages(flags, async (page) => {
    const { tokens, nextPageToken } = await client.tokens.listTokens({
      organization,
      kind,
      ...page,
    });
    return { items: tokens, nextPageToken };
  });
}

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Tokens that a command searches for a name; in larger organizations a token is named by id. */
const MAX_SEARCHED_TOKENS = 10_000;

/** Resolves a token by id, or by a name that only one token has. */
export async function findToken(call: CommandRun, text: string): Promise<Token> {
  const { client, organization } = call;
  if (ID.test(text)) {
    return await client.tokens.getToken({ organization, tokenId: text });
  }
  const { items } = await readTokens(call, { limit: MAX_SEARCHED_TOKENS });
  const [found, ...others] = items.filter(({ name }) => name === text);
  if (found === undefined) {
    const meant = nearest(
      text,
      items.map(({ name }) => name),
    );
    throw new CliError(`no token has the id or name ${JSON.stringify(text)}`, {
      exitCode: ExitCode.notFound,
      hint:
        meant === undefined
          ? "tessera token list shows those that you may see"
          : `did you mean ${plain(meant)}?`,
    });
  }
  if (others.length > 0) {
    const ids = [found, ...others].map(({ tokenId }) => tokenId).join(", ");
    throw usageError(`${others.length + 1} tokens have this name: give the id of one`, ids);
  }
  return found;
}
