import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

let served: Served;
/** The tasks of this deployment, as they were submitted. */
const ids: { readonly [endpoint: string]: string[] } = { sum: [], fail_later: [] };
let middle: string;
beforeAll(async () => {
  served = await serve("calls");
  for (let number = 0; number < 7; number++) {
    const failing = number % 3 === 2;
    const endpoint = failing ? "fail_later" : "sum";
    const id = await served.submit(endpoint, failing ? { how: "error" } : { numbers: [number] });
    const { created_at } = await served.ended(endpoint, id);
    ids[endpoint]?.push(id);
    if (number === 3) {
      middle = created_at;
    }
  }
});
afterAll(() => served.stop());

interface Page {
  readonly tasks?: readonly { readonly task_id: string }[];
  readonly next_page_token?: string;
}

async function page(query: string): Promise<Page> {
  const answer = await served.get(`/api/v1/tasks?${query}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.json as Page;
}

/** The ids of all pages. */
async function list(query: string): Promise<string[]> {
  const found: string[] = [];
  let token = "";
  do {
    const { tasks = [], next_page_token = "" } = await page(
      `${query}&page_token=${encodeURIComponent(token)}`,
    );
    found.push(...tasks.map(({ task_id }) => task_id));
    token = next_page_token;
  } while (token !== "");
  return found;
}

/** Ids are in the order of time. */
function newestFirst(...lists: readonly (readonly string[] | undefined)[]): string[] {
  return lists
    .flatMap((each) => each ?? [])
    .sort()
    .reverse();
}

describe("the list of tasks", () => {
  it("has all of them, newest first, as a status tells them but for their attempts", async () => {
    const { tasks = [], next_page_token } = await page("");
    expect(tasks.map(({ task_id }) => task_id)).toEqual(newestFirst(ids.sum, ids.fail_later));
    expect(next_page_token ?? "").toBe("");
    const [newest] = tasks;
    const { json } = await served.get(`/api/v1/tasks/${newest?.task_id}`);
    const { attempts, ...told } = json as Record<string, unknown>;
    expect(attempts).toHaveLength(1);
    expect(newest).toEqual({ ...told, attempts: [] });
  });

  it.each([1, 2, 3, 7])("is the same in pages of %i", async (size) => {
    expect(await list(`page_size=${size}`)).toEqual(newestFirst(ids.sum, ids.fail_later));
  });

  it("has only what the filter asks for", async () => {
    expect(await list("endpoint=sum&page_size=2")).toEqual(newestFirst(ids.sum));
    expect(await list("status=failure")).toEqual(newestFirst(ids.fail_later));
    expect(await list("status=queued")).toEqual([]);
    expect(await list("status=success&endpoint=fail_later")).toEqual([]);
    const all = newestFirst(ids.sum, ids.fail_later);
    expect(await list(`created_from=${middle}`)).toEqual(all.slice(0, 4));
    expect(await list(`created_before=${middle}&page_size=2`)).toEqual(all.slice(4));
    expect(await list(`created_before=${middle}&created_from=${middle}`)).toEqual([]);
  });

  it("takes a page of more than 1,000 as one of 1,000", async () => {
    expect((await page("page_size=100000")).tasks).toHaveLength(7);
  });

  it("refuses the token of another filter, and what is no token", async () => {
    const { next_page_token: token = "" } = await page("page_size=2&status=success");
    expect(token).toMatch(/^[\w-]+$/);
    const wrong = [
      `page_token=${token}`,
      `page_token=${token}&status=failure`,
      `page_token=${token}&status=success&endpoint=sum`,
      `page_token=${token}&status=success&created_from=${middle}`,
      `page_token=${token.slice(0, -3)}&status=success`,
      "page_token=bm90aGluZw",
      "page_token=%F0%9F%98%80",
    ];
    for (const query of wrong) {
      const answer = await served.get(`/api/v1/tasks?${query}`);
      expect(refusal(answer), query).toMatchObject({
        status: 400,
        reason: "REQUEST_INVALID",
        fields: ["page_token"],
      });
    }
    expect((await page(`page_token=${token}&status=success&page_size=50`)).tasks).toHaveLength(3);
  });

  it.each([
    ["page_size=-1", "page_size"],
    ["status=lost", "status"],
    ["created_from=yesterday", "created_from"],
    ["color=red", "color"],
  ])("refuses %s", async (query, field) => {
    const answer = await served.get(`/api/v1/tasks?${query}`);
    expect(refusal(answer)).toMatchObject({ status: 400, fields: [field] });
  });
});
