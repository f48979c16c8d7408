/** What the reference shows of the platform's own document. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fieldsOf, type OpenApi, type Schema, typeOf } from "../../src/console/app/api/openapi.ts";
import { curlOf } from "../../src/console/app/pages/reference/curl.ts";
import { groupsOf } from "../../src/console/app/pages/reference/operations.ts";
import { readByShell } from "../e2e/console/shell.ts";

const document = JSON.parse(
  readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8"),
) as OpenApi;
const origin = "https://tessera.example.com";

const all = groupsOf(document, "").flatMap(({ places }) => places);

function place(operationId: string) {
  const found = all.find(({ operation }) => operation.operationId === operationId);
  if (found === undefined) {
    throw new Error(`no operation ${operationId}`);
  }
  return found;
}

describe("the list of operations", () => {
  it("has every operation of the document once, by what its service is about", () => {
    const ids = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(all.map(({ operation }) => operation.operationId).toSorted()).toEqual(ids.toSorted());
    const nouns = groupsOf(document, "").map(({ noun }) => noun);
    expect(nouns.slice(0, 4)).toEqual([
      ...["Tasks", "Tasks of an organization", "Endpoints", "Deployments"],
    ]);
    // Services that have no place of their own come behind it.
    expect(nouns.at(-1)).toBe("Platform");
  });

  it("finds operations by words of their name, path, summary and resource, in any case", () => {
    const found = (search: string) =>
      groupsOf(document, search).flatMap(({ places }) => places.map(({ act }) => act));
    expect(found("delete /TOKENS")).toEqual(["Delete token"]);
    expect(found(" webhooks  rotate ")).toEqual(["Rotate webhook secret"]);
    expect(found("platform nodes:drain")).toEqual(["Drain node"]);
    expect(found("no such operation")).toEqual([]);
  });
});

describe("the call of an operation with curl", () => {
  const wordsOf = async (command: string) => (await readByShell("curl", command)).slice(0, -1);
  const words = (operationId: string, organization?: string) =>
    wordsOf(curlOf(place(operationId), { document, origin, organization }));

  it("has what the operation needs, with names to replace", async () => {
    expect(await words("TaskService.GetTask", "acme")).toEqual([
      `${origin}/api/v1/tasks/TASK_ID?deployment=acme/DEPLOYMENT`,
      ...["-H", "authorization: Bearer "],
    ]);
    const [url, , , , , , body = ""] = await words("TokenService.CreateToken");
    expect(url).toBe(`${origin}/api/v1/tokens`);
    expect(JSON.parse(body)).toEqual({
      ...{ organization: "ORGANIZATION", name: "NAME", access: ["developer_operations"] },
    });
  });

  it("sends a change by its method, and a cookie where no token is taken", async () => {
    expect(await words("OrganizationService.UpdateOrganization", "acme")).toEqual([
      ...["-X", "PATCH", `${origin}/api/v1/organizations/acme`],
      ...["-H", "authorization: Bearer ", "-H", "content-type: application/json"],
      ...["-d", expect.stringContaining("DISPLAY_NAME")],
    ]);
    expect(await words("AuthService.ListSessions")).toEqual([
      ...[`${origin}/api/v1/auth/sessions`, "--cookie", "cookies.txt"],
    ]);
  });

  it("is a command with a body of JSON for every operation", async () => {
    const end = "END OF THE COMMAND";
    const commands = all.map((one) => `${curlOf(one, { document, origin })} '${end}'`);
    const words = (await wordsOf(commands.join("\n"))).join("\0").split(`\0${end}`);
    for (const [index, { operation }] of all.entries()) {
      const args = (words[index] ?? "").split("\0").filter((word) => word !== "");
      const [url, ...more] = args.filter((word) => word.startsWith(`${origin}/api/v1/`));
      expect(more, url).toEqual([]);
      expect(url, operation.operationId).not.toMatch(/[{}\s]/);
      const at = args.indexOf("-d");
      expect(at >= 0, url).toBe(operation.requestBody !== undefined);
      if (at >= 0) {
        expect(() => JSON.parse(args[at + 1] ?? ""), url).not.toThrow();
      }
    }
  });
});

describe("the fields of a message", () => {
  const message = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
  const typed = (name: string, field: string) => {
    const found = fieldsOf(document, message(name)).find((one) => one.name === field);
    return found && typeOf(document, found.schema);
  };

  it("have types that people read", () => {
    expect(typed("TaskCallInput", "priority")).toBe("integer, int32, -100 to 100");
    expect(typed("TaskCallInput", "delay")).toBe("string, such as 30s");
    expect(typed("ListTasksResponse", "tasks")).toBe("list of Task");
  });

  it("are those of what a list or a map holds", () => {
    const [tasks] = fieldsOf(document, message("ListTasksResponse"));
    const names = (schema: Schema | undefined) =>
      schema && fieldsOf(document, schema).map(({ name }) => name);
    expect(names(tasks?.schema)).toContain("task_id");
    expect(names({ type: "object", additionalProperties: message("Task") })).toContain("task_id");
    expect(names({ type: "string" })).toEqual([]);
  });
});
