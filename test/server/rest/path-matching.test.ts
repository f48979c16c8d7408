import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RouteTable } from "../../../src/server/rest/path-matching.ts";
import { parseTemplate, type Template } from "../../../src/server/rest/path-template.ts";

describe("template", () => {
  it.each([
    ["", 'expected "/" at 0'],
    ["v1", 'expected "/" at 0'],
    ["/", 'expected a literal, "*", "**" or "{" at 1'],
    ["/a//b", "expected a literal"],
    ["/a/", "expected a literal"],
    ["/{", "expected the name of a field at 2"],
    ["/{a", 'expected "}" at 3'],
    ["/{a.}", "expected the name of a field at 4"],
    ["/{a={b}}", 'expected a literal, "*" or "**" at 4'],
    ["/{a}/{a}", '"a" is bound twice'],
    ["/**/b", '"**" must be the last segment'],
    ["/{a=**}/b", '"**" must be the last segment'],
    ["/a:", "expected a verb at 3"],
    ["/a:b/c", 'expected "/", ":verb" or the end at 4'],
    ["/***", 'expected "/", ":verb" or the end at 3'],
  ])("%j is refused: %s", (text, message) => {
    expect(() => parseTemplate(text)).toThrow(message);
  });

  it("takes a variable apart into fields and segments", () => {
    expect(parseTemplate("/v1/{book.name=shelves/*/books/**}:read")).toEqual({
      segments: [
        { kind: "literal", text: "v1" },
        { kind: "literal", text: "shelves" },
        { kind: "one" },
        { kind: "literal", text: "books" },
        { kind: "rest" },
      ],
      variables: [{ path: ["book", "name"], start: 1, end: undefined, multiple: true }],
      verb: "read",
    });
  });
});

function table(...lines: string[]): RouteTable<string> {
  const routes = new RouteTable<string>();
  for (const line of lines) {
    const [method = "", text = ""] = line.split(" ");
    routes.add({ method, text, template: parseTemplate(text), target: text });
  }
  return routes;
}

function target(routes: RouteTable<string>, method: string, path: string) {
  const found = routes.find(method, path);
  return "route" in found ? found.route.target : found.allow;
}

describe("route table", () => {
  it("prefers the more literal template, from left to right", () => {
    const routes = table("GET /a/{x}/c", "GET /a/b/{y}", "GET /a/b/c", "GET /a/**", "GET /{x}/b/c");
    expect(target(routes, "GET", "/a/b/c")).toBe("/a/b/c");
    expect(target(routes, "GET", "/a/b/d")).toBe("/a/b/{y}");
    expect(target(routes, "GET", "/a/x/c")).toBe("/a/{x}/c");
    expect(target(routes, "GET", "/a/x/d")).toBe("/a/**");
    expect(target(routes, "GET", "/a")).toBe("/a/**");
    expect(target(routes, "GET", "/z/b/c")).toBe("/{x}/b/c");
  });

  it("falls back to a less literal template that has the method", () => {
    const routes = table("GET /a/b", "POST /a/{x}");
    expect(target(routes, "POST", "/a/b")).toBe("/a/{x}");
    expect(target(routes, "PUT", "/a/b")).toEqual(["GET", "POST"]);
    expect(target(routes, "PUT", "/b")).toEqual([]);
  });

  it("takes a suffix for a verb only where a template registers it", () => {
    const routes = table("GET /t/{id}", "POST /t/{id}:cancel", "POST /u:cancel", "GET /u/{id}");
    expect(target(routes, "POST", "/t/1:cancel")).toBe("/t/{id}:cancel");
    expect(target(routes, "GET", "/t/1:cancel")).toEqual(["POST"]);
    expect(target(routes, "GET", "/t/1:stop")).toBe("/t/{id}");
    expect(target(routes, "GET", "/t/1%3Acancel")).toBe("/t/{id}");
    expect(target(routes, "GET", "/u/1:cancel")).toBe("/u/{id}");
    expect(target(routes, "POST", "/u:cancel")).toBe("/u:cancel");
  });

  it("lets the method * take every method that has no binding of its own", () => {
    const routes = table("* /a", "GET /a");
    expect(target(routes, "PROPFIND", "/a")).toBe("/a");
  });

  it("refuses two bindings of one method that match the same paths", () => {
    expect(() => table("GET /a/{x}/b", "GET /a/{y}/b")).toThrow(
      "GET /a/{y}/b and GET /a/{x}/b match the same paths",
    );
  });

  it("compares literals after decoding", () => {
    expect(target(table("GET /a%20b/c"), "GET", "/a%20b/%63")).toBe("/a%20b/c");
  });
});

const ident = fc.stringMatching(/^[a-z_][a-z0-9_]{0,5}$/);
const literal = fc.stringMatching(/^[A-Za-z0-9\-._~]{1,6}$/);
const plain = fc.oneof(literal, fc.constant("*"));

/** The text of a template: segments and variables, perhaps `**` last, perhaps a verb. */
const templateText = fc
  .record({
    parts: fc.array(fc.oneof(plain, fc.tuple(ident, fc.array(plain, { maxLength: 3 }))), {
      minLength: 1,
      maxLength: 5,
    }),
    rest: fc.constantFrom("", "**", "{last=**}", "{last=a/**}"),
    verb: fc.option(literal, { nil: undefined }),
  })
  .map(({ parts, rest, verb }) => {
    const segments = parts.map((part, index) =>
      typeof part === "string"
        ? part
        : `{${part[0]}${index}${part[1].length > 0 ? `=${part[1].join("/")}` : ""}}`,
    );
    return `/${[...segments, ...(rest === "" ? [] : [rest])].join("/")}${verb === undefined ? "" : `:${verb}`}`;
  });

/** Writes a path for a template after the rules of http.proto, and what it should bind. */
function expand(template: Template, values: readonly string[]) {
  const texts = template.segments.flatMap((segment, index) => {
    if (segment.kind === "literal") return [segment.text];
    const value = values[index % values.length] ?? "x";
    return segment.kind === "one" ? [value] : [value, value];
  });
  const path = `/${texts.map(encodeURIComponent).join("/")}`;
  const bound = template.variables.map(({ start, end, multiple }) => {
    const part = texts.slice(start, end);
    return multiple ? part.map((text) => text.replaceAll("/", "%2F")).join("/") : part[0];
  });
  return { path: path + (template.verb === undefined ? "" : `:${template.verb}`), bound };
}

describe("any template", () => {
  it("binds from a path what was put into the path", () => {
    const value = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(templateText, fc.array(value, { minLength: 1, maxLength: 6 }), (text, values) => {
        const template = parseTemplate(text);
        const { path, bound } = expand(template, values);
        const routes = table(`GET ${text}`);
        const found = routes.find("GET", path);
        expect("route" in found && found.values.map((one) => one.text)).toEqual(bound);
      }),
    );
  });
});
