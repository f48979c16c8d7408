/**
 * Pages of lists. A page token is where its page ended, behind a digest of
 * what was listed. It is not a secret and gives no access: it only has to tell
 * a token of another list from one of this.
 */
import { createHash } from "node:crypto";
import { problem } from "../../errors.ts";
import type { PageQuery } from "../../storage/accounts/page.ts";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1_000;

const SIGNATURE_BYTES = 12;

interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

export function pageSizeOf({ pageSize }: Pick<PageRequest, "pageSize">): number {
  return Math.min(pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
}

export interface PageOptions {
  /** The method, for its message. */
  readonly method: string;
  /** What is listed: all that a token has to be of. */
  readonly filter: readonly (string | number | undefined)[];
  /** True for text that a page of this list can end at. Default: any. */
  readonly isEnd?: (text: string) => boolean;
}

/** One list, as one request asks for it. */
export class PageTokens {
  readonly #signature: Buffer;
  readonly #options: PageOptions;

  constructor(options: PageOptions) {
    const text = JSON.stringify([options.method, ...options.filter.map((one) => one ?? null)]);
    this.#signature = createHash("sha256").update(text).digest().subarray(0, SIGNATURE_BYTES);
    this.#options = options;
  }

  /** Where the page before ended. Throws REQUEST_INVALID for a token that is not of this list. */
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

  /** The token of the page after `end`; empty when there is none. */
  after(end: string | undefined): string {
    return end === undefined
      ? ""
      : Buffer.concat([this.#signature, Buffer.from(end)]).toString("base64url");
  }

  /** What to ask the storage for. */
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
