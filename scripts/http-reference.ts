/**
 * Writes docs/http.md, and the OpenAPI document of the platform that it is
 * made from, docs/openapi.json; a test holds them to what the server does.
 * The other document it is made from is /docs.json of examples/summarizer.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ErrorReasonSchema } from "../gen/tessera/v1/error_pb.js";
import { serveService } from "../src/app/serve.ts";
import { readServeConfig } from "../src/config/config.ts";
import { problem, type Reason } from "../src/errors.ts";
import type { JsonSchema } from "../src/protocol/manifest.ts";
import { httpStatus } from "../src/server/http/status.ts";
import { enumComments } from "./reference/comments.ts";
import { type Document, operations, schemas } from "./reference/page.ts";
import { platformDocument, readFiles } from "./reference/platform.ts";

const pathOf = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

export const HTTP_PATH: string = pathOf("docs/http.md");
export const OPENAPI_PATH: string = pathOf("docs/openapi.json");

const SERVICE = pathOf("examples/summarizer/service.ts");
const TOKEN = "a-token-for-the-reference";

/** `/docs.json`, as a server with a token answers it. */
async function deploymentDocument(): Promise<JsonSchema> {
  const { config } = readServeConfig(SERVICE, { port: "0", workers: "1" }, {});
  const served = await serveService({ ...config, logLevel: "silent" }, { token: TOKEN });
  try {
    const answer = await fetch(`http://127.0.0.1:${served.port}/docs.json`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    return (await answer.json()) as JsonSchema;
  } finally {
    await served.stop();
  }
}

/** What the files should hold. */
export async function httpReference(): Promise<{
  readonly page: string;
  readonly openapi: string;
}> {
  const platform = platformDocument();
  const deployment = (await deploymentDocument()) as unknown as Document;
  return {
    page: page(deployment, platform as unknown as Document),
    openapi: `${JSON.stringify(platform, null, 2)}\n`,
  };
}

function page(deployment: Document, platform: Document): string {
  const calls = operations(deployment, "##");
  const administration = operations(platform, "##");
  return `# HTTP

This page is made by \`node scripts/http-reference.ts\` from two OpenAPI documents: \`/docs.json\` of a deployment, here that of [examples/summarizer](../examples/summarizer/service.ts), and that of the platform, [openapi.json](openapi.json), which comes from [proto/tessera/v1](../proto/tessera/v1). What a task goes through and the clients that do all this for you are in [TypeScript](typescript.md), [Python](python.md) and [gRPC](grpc.md).

A token is sent as \`Authorization: Bearer …\`. Calls of a deployment need one where it asks for it; the paths of the platform say who may call. What only a person who is signed in may call takes the cookie that \`POST /api/v1/auth:signIn\` sets (\`--cookie-jar cookies.txt\`).

## Errors

Every error is \`{"code", "message", "details"}\` with the status below: \`message\` says what was wrong and what to do, and the first of \`details\` names the reason, for programs:

\`\`\`json
{
  "code": "not_found",
  "message": "task 019a0b5e-7c1d-7f3a-8f21-5b0c6f1d2e3a does not exist or has expired",
  "details": [
    {
      "type": "google.rpc.ErrorInfo",
      "debug": { "reason": "TASK_NOT_FOUND", "domain": "tessera" }
    }
  ]
}
\`\`\`

\`429\` and \`503\` say in \`Retry-After\` after how many seconds the same may do better. Any path may answer \`SERVER_BUSY\`, \`STORAGE_UNAVAILABLE\`, \`SHUTTING_DOWN\` and \`INTERNAL\`.

| reason | status | |
|---|---|---|
${reasonRows()}

## A deployment

On the deployment's own host (\`http://summarizer.acme.apps.localhost:3000\`), on the platform's with the header \`Tessera-Deployment: acme/summarizer\`, or on any host under \`tessera serve\`. An endpoint that is an \`api\` has one path, as \`summarize\` here; one that is a \`task\` has those of \`summarize_batch\`.

${calls}

### Types of a deployment

${schemas(deployment, calls, "####")}

## The platform

On the platform's host; \`TaskService\` and \`EndpointService\` also where a deployment is, and under \`tessera serve\`. Fields that are left out have the value that their type has when empty. Times are as in RFC 3339, spans of time such as \`30s\`, numbers of 64 bits are strings; unknown fields and parameters are refused.

${administration}

### Types of the platform

${schemas(platform, administration, "####")}
`;
}

function reasonRows(): string {
  const comments = enumComments(readFiles(), ErrorReasonSchema.typeName);
  return ErrorReasonSchema.values
    .slice(1)
    .map(({ localName }) => {
      const status = httpStatus(problem(localName as Reason, ""));
      return `| \`${localName}\` | ${status} | ${comments.get(localName) ?? ""} |`;
    })
    .join("\n");
}

if (import.meta.main) {
  const { page, openapi } = await httpReference();
  writeFileSync(HTTP_PATH, page);
  writeFileSync(OPENAPI_PATH, openapi);
}
