import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { startLibrary } from "./library.ts";

type Server = Awaited<ReturnType<typeof startLibrary>>;
let server: Server;

beforeAll(async () => {
  server = await startLibrary({
    maxBodyBytes: 10_000,
    unary: ({ method, message, json }) => {
      if (method.output.typeName === HttpBodySchema.typeName) {
        return method.name === "Echo"
          ? message
          : create(HttpBodySchema, {
              contentType: "text/x-path",
              data: Buffer.from(JSON.stringify(json)),
            });
      }
      return message;
    },
  });
});
afterAll(async () => server[Symbol.asyncDispose]());

async function call(line: string, body?: unknown, headers: Record<string, string> = {}) {
  const [method = "", path = ""] = line.split(" ");
  const raw = typeof body === "string" || body instanceof Uint8Array;
  const res = await fetch(server.origin + path, {
    method,
    headers: {
      ...(body === undefined || raw ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: raw ? body : JSON.stringify(body) }),
  });
  const text = await res.text();
  const json =
    text !== "" && res.headers.get("content-type")?.includes("json") ? JSON.parse(text) : undefined;
  return { res, status: res.status, text, json };
}

/** The lists of the library's requests, which it answers with. */
const NO_LISTS = { tags: [], genres: [], books: [] };

describe("what is bound", () => {
  it.each<[string, unknown, unknown]>([
    ["GET /lib/v1/books/a", undefined, { name: "a" }],
    ["GET /lib/v1/books/a%2Fb%20c%25", undefined, { name: "a/b c%" }],
    ["GET /lib/v1/books/a+b", undefined, { name: "a+b" }],
    ["GET /lib/v1/books/a%252F", undefined, { name: "a%2F" }],
    ["GET /lib/v1/books/a:b", undefined, { name: "a:b" }],
    ["GET /lib/v1/shelves/1/books/x%2Fy", undefined, { name: "shelves/1/books/x%2Fy" }],
    ["GET /lib/v1/numbers/9007199254740993", undefined, { number: "9007199254740993" }],
    ["GET /lib/v1/books/a?name=a", undefined, { name: "a" }],
    ["GET /lib/v1/numbers/7?number=07", undefined, { number: "7" }],
    [
      "GET /lib/v1/books/a?number=-5&flag=true&ratio=0.5",
      undefined,
      { name: "a", number: "-5", flag: true, ratio: 0.5 },
    ],
    ["GET /lib/v1/books/a?genre=poetry", undefined, { name: "a", genre: "poetry" }],
    ["GET /lib/v1/books/a?genre=GENRE_POETRY", undefined, { name: "a", genre: "poetry" }],
    ["GET /lib/v1/books/a?genre=2", undefined, { name: "a", genre: "poetry" }],
    ["GET /lib/v1/books/a?tags=x&tags=y", undefined, { name: "a", tags: ["x", "y"] }],
    [
      "GET /lib/v1/books/a?genres=poetry&genres=science_fiction",
      undefined,
      { name: "a", genres: ["poetry", "science_fiction"] },
    ],
    [
      "GET /lib/v1/books/a?book.title=T+t&book.pages=3",
      undefined,
      { name: "a", book: { title: "T t", pages: 3 } },
    ],
    ["GET /lib/v1/books/a?wait=20", undefined, { name: "a", wait: "20s" }],
    ["GET /lib/v1/books/a?wait=1.5s", undefined, { name: "a", wait: "1.500s" }],
    [
      "GET /lib/v1/books/a?due_time=2026-01-02T03:04:05Z",
      undefined,
      { name: "a", due_time: "2026-01-02T03:04:05Z" },
    ],
    [
      "GET /lib/v1/books/a?dueTime=2026-01-02T03:04:05Z",
      undefined,
      { name: "a", due_time: "2026-01-02T03:04:05Z" },
    ],
    [
      "GET /lib/v1/books/a?update_mask=due_time,book.title",
      undefined,
      { name: "a", update_mask: "dueTime,book.title" },
    ],
    ["GET /lib/v1/books/a?maybe=false&note=", undefined, { name: "a", maybe: false, note: "" }],
    ["GET /lib/v1/books/a?token=AAEC", undefined, { name: "a", token: "AAEC" }],
    ["DELETE /lib/v1/books/a", undefined, { name: "a" }],
    ["PURGE /lib/v1/cache", undefined, {}],
    [
      "POST /lib/v1/books",
      { dueTime: "2026-01-02T03:04:05Z", genre: "poetry" },
      { due_time: "2026-01-02T03:04:05Z", genre: "poetry" },
    ],
    [
      "POST /lib/v1/books",
      { labels: { a: "poetry" }, books: [{ genre: "poetry" }] },
      { labels: { a: "poetry" }, books: [{ genre: "poetry" }] },
    ],
    ["POST /lib/v1/books", undefined, {}],
    ["POST /lib/v1/books/a:close", { name: "a", flag: true }, { name: "a", flag: true }],
    ["POST /lib/v1/books/a:close?name=a", { name: null }, { name: "a" }],
    [
      "PATCH /lib/v1/nested/a?flag=true",
      { title: "T" },
      { name: "a", title: "T", pages: 0, genre: "unspecified" },
    ],
  ])("%s with %j is %j", async (line, body, expected) => {
    const { status, json, res } = await call(line, body);
    const lists = line.startsWith("PATCH") ? {} : NO_LISTS;
    expect({ status, json }).toEqual({ status: 200, json: { ...lists, ...(expected as object) } });
    expect(res.headers.get("x-answered")).toBe("yes");
  });
});

describe("what is refused", () => {
  it.each<[string, unknown, string, RegExp]>([
    ["GET /lib/v1/books/a?name=b", undefined, "name", /contradicts the path/],
    ["GET /lib/v1/books/a?name=a&name=b", undefined, "name", /contradicts/],
    ["POST /lib/v1/books/a:close", { name: "b" }, "name", /contradicts the path/],
    ["PATCH /lib/v1/nested/a", { name: "b" }, "book.name", /contradicts the path/],
    ["GET /lib/v1/books/a?colour=red", undefined, "colour", /unknown query parameter/],
    ["GET /lib/v1/books/a?book.colour=red", undefined, "book.colour", /unknown query/],
    ["GET /lib/v1/books/a?numbr=1", undefined, "numbr", /did you mean number\?/],
    ["GET /lib/v1/books/a?due_time=2026-11-31T03:04:05Z", undefined, "due_time", /does not exist/],
    ["GET /lib/v1/books/a?due_time=2026-02-29T03:04:05Z", undefined, "due_time", /does not exist/],
    ["GET /lib/v1/books/a?due_time=2026-01-02T24:00:00Z", undefined, "due_time", /does not exist/],
    ["POST /lib/v1/books", { dueTime: "2026-11-31T03:04:05Z" }, "due_time", /does not exist/],
    ["POST /lib/v1/books", { numbr: 1 }, "numbr", /unknown field; did you mean number\?/],
    ["GET /lib/v1/books/a?number=1&number=2", undefined, "number", /more than once/],
    [
      "GET /lib/v1/books/a?due_time=2026-01-02T03:04:05Z&dueTime=2026-01-02T03:04:05Z",
      undefined,
      "dueTime",
      /more than once/,
    ],
    ["GET /lib/v1/books/a?left=1&right=2", undefined, "left", /together with right/],
    ["POST /lib/v1/books", { left: "1", right: "2" }, "left", /together with right/],
    ["GET /lib/v1/books/a?number=x", undefined, "number", /integer/],
    ["GET /lib/v1/books/a?flag=yes", undefined, "flag", /true or false/],
    [
      "GET /lib/v1/books/a?genre=prose",
      undefined,
      "genre",
      /one of unspecified, science_fiction, poetry/,
    ],
    ["GET /lib/v1/books/a?wait=soon", undefined, "wait", /a duration such as "20s"/],
    ["GET /lib/v1/books/a?attributes=x", undefined, "attributes", /cannot be given in the query/],
    ["GET /lib/v1/books/a?labels=x", undefined, "labels", /cannot be given in the query/],
    ["GET /lib/v1/numbers/x", undefined, "number", /integer/],
    ["POST /lib/v1/books?flag=true", {}, "flag", /given in the body/],
    ["PATCH /lib/v1/nested/a?book.title=x", {}, "book.title", /given in the body/],
    ["POST /lib/v1/books", { colour: "red" }, "colour", /unknown field/],
    ["POST /lib/v1/books", { book: { pages: "x" } }, "book.pages", /integer of 32 bits, not "x"/],
    ["POST /lib/v1/books", { genres: ["poetry", { a: 1 }] }, "genres[1]", /one of .*, not {"a":1}/],
    ["POST /lib/v1/books", { genres: 7 }, "genres", /a list, not 7/],
    ["POST /lib/v1/books", { tags: ["a", 1] }, "tags[1]", /a string, not 1/],
    ["POST /lib/v1/books", { books: [{}, 7] }, "books[1]", /a Book, not 7/],
    ["POST /lib/v1/books", { labels: { a: "prose" } }, "labels[a]", /one of .*, not "prose"/],
    ["POST /lib/v1/books", { labels: ["a"] }, "labels", /an object, not \["a"\]/],
    ["POST /lib/v1/books", { dueTime: null, due_time: null }, "due_time", /given twice/],
    ["DELETE /lib/v1/books/a", {}, "", /takes no body/],
  ])("%s with %j names %s", async (line, body, field, description) => {
    const { status, json } = await call(line, body);
    expect(status).toBe(400);
    expect(json.code).toBe("invalid_argument");
    expect(json.details[0]).toMatchObject({
      type: "google.rpc.ErrorInfo",
      debug: { reason: "REQUEST_INVALID", domain: "tessera" },
    });
    expect(json.details[1].debug.fieldViolations[0].field ?? "").toBe(field);
    expect(json.message).toMatch(description);
  });

  it.each<[string, unknown, Record<string, string>, number, string]>([
    ["POST /lib/v1/books", "{", { "content-type": "application/json" }, 400, "BODY_MALFORMED"],
    ["POST /lib/v1/books", "[]", { "content-type": "application/json" }, 400, "BODY_MALFORMED"],
    [
      "POST /lib/v1/books",
      Uint8Array.of(34, 255, 34),
      { "content-type": "application/json" },
      400,
      "BODY_MALFORMED",
    ],
    [
      "POST /lib/v1/books",
      "a=b",
      { "content-type": "application/x-www-form-urlencoded" },
      415,
      "CONTENT_TYPE_UNSUPPORTED",
    ],
    ["POST /lib/v1/books", "{}", { "content-type": "text/plain" }, 415, "CONTENT_TYPE_UNSUPPORTED"],
    [
      "POST /lib/v1/books",
      "{}",
      { "content-type": "application/json", "content-encoding": "gzip, br" },
      415,
      "CONTENT_TYPE_UNSUPPORTED",
    ],
    ["POST /lib/v1/books", "{}", { "content-type": "json" }, 415, "CONTENT_TYPE_UNSUPPORTED"],
    ["GET /lib/v1/books/%ff", undefined, {}, 400, "REQUEST_INVALID"],
    ["GET /lib/v1/books/a%2", undefined, {}, 400, "REQUEST_INVALID"],
    ["GET /lib/v1/books/", undefined, {}, 404, "ROUTE_NOT_FOUND"],
  ])("%s with %j is refused (%j): %i %s", async (line, body, headers, status, reason) => {
    const answer = await call(line, body, headers);
    expect(answer.status).toBe(status);
    expect(answer.json.details[0].debug.reason).toBe(reason);
  });

  it.each([
    ["POST /lib/v1/numbers/1", "GET, HEAD"],
    ["PUT /lib/v1/books/a", "DELETE, GET, HEAD"],
    ["GET /lib/v1/books/a:close", "POST"],
  ])("%s is 405 with Allow: %s", async (line, allow) => {
    const { res, status, json } = await call(line);
    expect(status).toBe(405);
    expect(res.headers.get("allow")).toBe(allow);
    expect(json.details[0].debug.reason).toBe("METHOD_NOT_ALLOWED");
  });

  it.each([10_001, 20_000_000])(
    "a body of %i bytes is answered though it is still being sent",
    async (size) => {
      const headers = { "content-type": "application/json" };
      const { status, json } = await call("POST /lib/v1/books", new Uint8Array(size), headers);
      expect(status).toBe(413);
      expect(json.details[0].debug.reason).toBe("BODY_TOO_LARGE");
    },
  );
});

describe("raw bodies", () => {
  it("come in and go out as they are", async () => {
    const bytes = Uint8Array.of(0, 1, 2, 255);
    const { res } = await call("POST /lib/v1/echo", bytes, { "content-type": "image/x-test" });
    expect(res.status).toBe(200);
    expect(res.headers.get("content-type")).toBe("image/x-test");
    expect(res.headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("go into the field that the binding names, beside path and query", async () => {
    const { text, res } = await call("PUT /lib/v1/files/a/b%20c?flag=true", "hello", {
      "content-type": "text/x-hello",
    });
    expect(res.headers.get("content-type")).toBe("text/x-hello");
    expect(text).toBe("hello");
  });

  it("take a path of any number of segments, also none", async () => {
    expect((await call("GET /lib/v1/files/a/b%2Fc/d%20e")).text).toBe('{"name":"a/b%2Fc/d e"}');
    expect((await call("GET /lib/v1/files")).text).toBe("{}");
  });

  it("answer HEAD with the headers alone", async () => {
    const { status, text } = await call("HEAD /lib/v1/books/a");
    expect({ status, text }).toEqual({ status: 200, text: "" });
  });
});
