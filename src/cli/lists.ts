/** Lists in pages: their options, and how a command reads them. */
import { InvalidArgumentError, type Option } from "commander";
import { type CallFlags, type CommandRun, option } from "./command.ts";

export interface ListFlags extends CallFlags {
  readonly limit: number;
  readonly pageToken?: string;
}

/** Largest value of `--limit`. */
const MAX_CLI_LIMIT = 10_000;
/** Items that a command asks for in one page. */
const MAX_CLI_PAGE_SIZE = 1_000;

/** The options of every paginated list. */
export const LIST_OPTIONS: readonly Option[] = [
  option("--limit <count>", "how many to list at most")
    .default(100)
    .argParser((text: string) => {
      const count = Number(text);
      if (!/^\d+$/.test(text) || count < 1 || count > MAX_CLI_LIMIT) {
        throw new InvalidArgumentError(`Give a whole number from 1 to ${MAX_CLI_LIMIT}.`);
      }
      return count;
    }),
  option("--page-token <token>", "go on where a list with this next_page_token ended"),
];

export interface ListPage<Item> {
  readonly items: readonly Item[];
  readonly nextPageToken: string;
}

/** Reads pages until `limit` items or the last page. */
export async function readPages<Item>(
  { limit, pageToken: first = "" }: Pick<ListFlags, "limit" | "pageToken">,
  read: (page: {
    readonly pageSize: number;
    readonly pageToken: string;
  }) => Promise<ListPage<Item>>,
): Promise<ListPage<Item>> {
  const items: Item[] = [];
  let pageToken = first;
  do {
    const pageSize = Math.min(limit - items.length, MAX_CLI_PAGE_SIZE);
    const page = await read({ pageSize, pageToken });
    items.push(...page.items);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && items.length < limit);
  return { items, nextPageToken: pageToken };
}

/** Says that the list has more items. */
export function mentionMore(call: CommandRun, nextPageToken: string): void {
  if (nextPageToken !== "") {
    call.done("There are more: raise --limit.");
  }
}
