/**
 * Pagination of lists. A page token holds a digest of the list and the end of
 * the previous page. It is no secret and gives no access: the digest only
 * detects a token of another list.
 */
import { createHash } from "node:crypto";
import { problem } from "../errors.ts";
import type { PageQuery } from "../storage/accounts/page.ts";

/** Items on a page unless the request names another number. */
const DEFAULT_PAGE_SIZE = 50;
/** Items on a page. */
const MAX_PAGE_SIZE = 1_000;

const SIGNATURE_BYTES = 12;

interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** The number of items on a page: the requested one, its default, or the maximum. */
export function pageSizeOf({ pageSize }: Pick<PageRequest, "pageSize">): number {
  return Math.min(pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
}

interface PageOptions {
  /** Name of the method, for messages. */
  readonly method: string;
  /** The filter of the list, which a token has to match. */
  readonly filter: readonly (string | number | undefined)[];
  /** True for a text at which a page of this list can end. Default: any. */
  readonly isEnd?: (text: string) => boolean;
}

/** The page tokens of one list with one filter. */
export class PageTokens {
  readonly #signature: Buffer;
  readonly #options: PageOptions;

  constructor(options: PageOptions) {
    const text = JSON.stringify([options.method, ...options.filter.map((one) => one ?? null)]);
    this.#signature = createHash("sha256").update(text).digest().subarray(0, SIGNATURE_BYTES);
    this.#options = options;
  }

  /** The end of the previous page. Throws REQUEST_INVALID for a token of another list. */
  open(pageToken: string): string {
    const { method, isEnd = (text) => text !== "" } = this.#options;
    const bytes = Buffer.from(pageToken, "base64url");
    const end = bytes.subarray(SIGNATURE_BYTES).toString();
    if (!isEnd(end)) {
      throw invalid(`is not one that ${method} gave: take it from next_page_token as it is`);
    }
    if (!bytes.subarray(0, SIGNATURE_BYTES).equals(this.#signature)) {
      throw invalid("belongs to another filter: keep the filter, or begin without a token");
    }
    return end;
  }

  /** The token of the page after `end`; empty after the last page. */
  after(end: string | undefined): string {
    return end === undefined
      ? ""
      : Buffer.concat([this.#signature, Buffer.from(end)]).toString("base64url");
  }

  /** The query for the storage. */
  query(req: PageRequest): PageQuery {
    const limit = pageSizeOf(req);
    return req.pageToken === "" ? { limit } : { limit, after: this.open(req.pageToken) };
  }
}

function invalid(description: string): Error {
  return problem("REQUEST_INVALID", `page_token ${description}`, {
    violations: [{ field: "page_token", description }],
  });
}
