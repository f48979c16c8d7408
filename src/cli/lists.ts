/** Lists in pages: their options, and how a command reads them. */
import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { InvalidArgumentError, type Option } from "commander";
import { type CommandRun, option } from "./command.ts";
import type { Table } from "./table.ts";

export interface ListFlags {
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

type PageFlags = Pick<ListFlags, "limit" | "pageToken">;

/** The page that a request asks for. */
interface AskedPage {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** Reads pages until `limit` items or the last page. */
export async function readPages<Item>(
  { limit, pageToken: first = "" }: PageFlags,
  read: (page: AskedPage) => Promise<ListPage<Item>>,
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

/**
 * Shows the items of a list as one answer, however many pages they were read in, and says where
 * there are more. `field` is the one of the answer that has the items.
 */
export async function showPages<Desc extends DescMessage>(
  call: CommandRun,
  flags: PageFlags,
  list: {
    readonly schema: Desc;
    readonly field: keyof MessageShape<Desc> & string;
    read(page: AskedPage): Promise<MessageShape<Desc>>;
    text(all: MessageShape<Desc>): string | Table;
  },
): Promise<void> {
  const { schema, field, read, text } = list;
  const { items, nextPageToken } = await readPages(flags, async (page) => {
    const answer = (await read(page)) as unknown as { readonly nextPageToken: string };
    const items = answer[field as keyof typeof answer] as unknown as readonly unknown[];
    return { items, nextPageToken: answer.nextPageToken };
  });
  const all = { [field]: [...items], nextPageToken } as unknown as MessageInitShape<Desc>;
  call.show(schema, create(schema, all), text);
  mentionMore(call, nextPageToken);
}

/** Says that the list has more items. */
export function mentionMore(call: CommandRun, nextPageToken: string): void {
  if (nextPageToken !== "") {
    call.done("There are more: raise --limit.");
  }
}
