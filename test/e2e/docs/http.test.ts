/** docs/http.md and docs/openapi.json: made from what the server is, and true of it. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Validator } from "@seriousme/openapi-schema-validator";
import { beforeAll, describe, expect, it } from "vitest";
import { HTTP_PATH, httpReference, OPENAPI_PATH } from "../../../scripts/http-reference.ts";
import { serveService } from "../../../src/app/serve.ts";
import { readServeConfig } from "../../../src/config/serve.ts";
import { run } from "../clients/python-environment.ts";

const SERVICE = fileURLToPath(new URL("../../../examples/summarizer/service.ts", import.meta.url));
const TOKEN = "a-token-for-readers";
const SHOWN_ID = "019a0b5e-7c1d-800f-8f21-5b0c6f1d2e3a";

describe("the HTTP reference", () => {
  let made: Awaited<ReturnType<typeof httpReference>>;
  beforeAll(async () => {
    made = await httpReference();
  });

  it("is what the documents say", () => {
    // When this fails: node scripts/http-reference.ts
    expect(readFileSync(OPENAPI_PATH, "utf8")).toBe(made.openapi);
    expect(readFileSync(HTTP_PATH, "utf8")).toBe(made.page);
  });

  it("has a document of the platform that is valid OpenAPI 3.1", async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(made.openapi));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
  });

  it("leads nowhere but to headings of its own and to files", () => {
    const anchors = [...made.page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/[^\w -]/g, "")
        .replaceAll(" ", "-"),
    );
    const links = [...made.page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor);
    expect(links.length).toBeGreaterThan(40);
    expect(links.filter((anchor) => !anchors.includes(anchor ?? ""))).toEqual([]);
    // A heading that is there twice would take the other's links.
    const linked = new Set(links);
    expect(
      anchors.filter((anchor, at) => linked.has(anchor) && anchors.indexOf(anchor) !== at),
    ).toEqual([]);
  });

  it("shows commands for a deployment that work as they stand there", async () => {
    const { config } = readServeConfig(SERVICE, { port: "0", workers: "1" }, {});
    const served = await serveService({ ...config, logLevel: "silent" }, { token: TOKEN });
    const url = `http://127.0.0.1:${served.port}`;
    try {
      const submitted = await fetch(`${url}/summarize_batch`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify({ texts: ["One. Two."] }),
      });
      expect(submitted.status).toBe(200);
      const listed = await fetch(`${url}/api/v1/tasks`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      const { tasks } = (await listed.json()) as { tasks: { task_id: string }[] };
      const section = made.page.slice(
        made.page.indexOf("## A deployment"),
        made.page.indexOf("### Types of a deployment"),
      );
      const commands = [...section.matchAll(/```sh\n(curl [\s\S]*?)\n```/g)];
      expect(commands).toHaveLength([...section.matchAll(/^#### /gm)].length);
      for (const [, command = ""] of commands) {
        const own = command
          .replace("http://localhost:3000", url)
          .replace(SHOWN_ID, tasks[0]?.task_id ?? "")
          .replace("curl ", "curl -s -o /dev/null -w '%{http_code}' ");
        const status = await run("bash", ["-c", own], { env: { TOKEN, no_proxy: "127.0.0.1" } });
        const accepted = /submit|retry/.test(own) ? "202" : "200";
        // The task has ended by then.
        expect(status, command).toBe(own.includes("/cancel?") ? "409" : accepted);
      }
    } finally {
      await served.stop();
    }
  });
});
