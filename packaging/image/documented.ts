/** Which commands of the documents run with the image alone, and why the others do not. */
import type { DocumentedBlock } from "../../test/e2e/docs/blocks.ts";

/** A page, and what a block of commands in it begins with, or matches. */
export type Block = readonly [page: string, start: string | RegExp];

/** Those of a deployment, which `tessera serve` answers. */
export const OF_A_DEPLOYMENT = /"http:\/\/localhost:3000\/(?!api\/)/;
/** Those of the platform that read, and need no id. */
export const THAT_READ =
  /^curl "http:\/\/localhost:3000\/api\/v1\/(?!tasks|endpoints)[^"?\d]*" \\\n {2}-H "authorization: Bearer \$TOKEN"\n$/;

/** The others of the platform. */
const THAT_CHANGE = new RegExp(`^(?!${THAT_READ.source.slice(1)})[^]*"http://localhost:3000/api/`);

/** What `commands.ts` runs with the small image. */
export const SMALL: readonly Block[] = [
  ["docs/quickstart.md", "npx tessera serve examples"],
  ["README.md", "npx tessera serve service.ts"],
  ["README.md", "curl http://localhost:3000/summarize"],
  ["docs/calls.md", "npx buf curl"],
  ["docs/calls.md", "npx tessera call summarize"],
  ["docs/platform.md", "npx tessera start"],
  ["docs/deploy.md", "npx tessera deploy examples"],
  ["docs/deploy.md", "curl http://summarizer"],
  ["docs/deploy.md", "app=http://summarizer"],
  ["docs/deploy.md", "npx tessera deployment update"],
  ["docs/backup.md", "tessera admin backup"],
  ["docs/cli.md", "source <(tessera completion"],
  ["docs/http.md", OF_A_DEPLOYMENT],
  ["docs/http.md", THAT_READ],
  ["docs/install.md", "npm run package:image   "],
  ["docs/python.md", "npx tessera client generate"],
  ["docs/tracing.md", "OTEL_EXPORTER"],
  ["docs/upgrade.md", "tessera admin migrate"],
  ["docs/workers.md", "tessera token create"],
];

/** What it runs with the image that has Python. */
export const PYTHON: readonly Block[] = [
  ["README.md", "npx tessera serve service.py"],
  ["docs/coming-from-bentoml.md", "npx tessera"],
  ["docs/install.md", "npm run package:image -- --python"],
  ["docs/python-services.md", "npx tessera serve"],
];

const NEEDS_NPM = "needs npm, which the image has not";
const NEEDS_SOURCES = "needs the sources with npm";

export const NOT_IN_IMAGE: readonly (readonly [...Block, reason: string])[] = [
  ["CONTRIBUTING.md", "", NEEDS_SOURCES],
  ["bench/README.md", "", NEEDS_SOURCES],
  ["docs/sizing.md", "", NEEDS_SOURCES],
  ["examples/digits/README.md", "", NEEDS_SOURCES],
  ["examples/filetype/README.md", "", NEEDS_SOURCES],
  ["examples/generator/README.md", "", NEEDS_SOURCES],
  ["examples/ocr/README.md", "", NEEDS_SOURCES],
  ["examples/speech/README.md", "", NEEDS_SOURCES],
  ["examples/summarizer/README.md", "", NEEDS_SOURCES],
  ["examples/worker-go/README.md", "", NEEDS_SOURCES],
  ["clients/proto/README.md", "", "needs a compiler of protos"],
  ["clients/python/README.md", "", "needs pip"],
  ["docs/typescript.md", "", NEEDS_NPM],
  ["docs/quickstart.md", "npx tessera-platform init", NEEDS_NPM],
  ["README.md", "npm ci", NEEDS_SOURCES],
  ["docs/quickstart.md", "npm ci", NEEDS_SOURCES],
  ["docs/typescript-services.md", "npx tessera serve", "the command of README.md, which runs"],
  ["docs/platform.md", "npx tessera admin setup", "the command of docs/install.md, which runs"],
  ["docs/platform.md", "npx tessera cloud login", "a person confirms it in a browser"],
  ["docs/platform.md", "TESSERA_SMTP_URL=", "needs a mail server"],
  ["docs/deploy.md", "npx tessera deployment pause", "needs that deployment"],
  ["docs/deploy.md", "npx tessera secret set", "asks for a value in a terminal"],
  ["docs/schedules.md", "npx tessera", "needs a platform: test/e2e/cli/schedule.test.ts"],
  ["docs/usage.md", "npx tessera", "needs a platform: test/e2e/cli/usage.test.ts"],
  ["docs/limits-by-key.md", "for customer", "needs that service: test/e2e/serve/keys.test.ts"],
  ["docs/limits-by-key.md", "for word", "needs that service: test/e2e/serve/keys.test.ts"],
  ["docs/limits-by-key.md", "for text", "needs that service: test/e2e/serve/keys.test.ts"],
  ["docs/calls.md", 'curl "http://localhost:3000/summarize_batch', "a minute later, by its delay"],
  ["docs/tokens.md", "npx tessera token create", "asks for a password in a terminal"],
  ["docs/tokens.md", "curl", "docs/deploy.md has the same call"],
  ["docs/tokens.md", "npx tessera token rotate", "needs the token that was made before"],
  ["docs/deploy.md", "npx tessera token create gpu-1", "needs a machine with that name and label"],
  ["docs/backup.md", "pg_dump", "needs Postgres and its programs"],
  ["docs/backup.md", "createdb", "needs Postgres and its programs"],
  ["docs/go.md", "", "needs Go"],
  ["docs/grpc.md", "", "needs grpcurl, Go or pip"],
  ["docs/high-availability.md", "", "needs Postgres and pgBackRest on several machines"],
  [
    "docs/http.md",
    THAT_CHANGE,
    "changes things that have the ids of an example, or needs a browser's cookie",
  ],
  ["docs/install.md", "npm ci && npm pack", NEEDS_NPM],
  ["docs/install.md", "export POSTGRES_PASSWORD", "needs Docker"],
  ["docs/install.md", "mkdir -p /opt/tessera", "is about the tarball"],
  ["docs/install.md", "kubectl create secret", "needs a cluster"],
  ["docs/install.md", "sha256sum --check", "needs a release"],
  ["docs/java.md", "", "needs Java"],
  ["docs/servers.md", "pip install", "needs packages"],
  ["docs/servers.md", "curl", "calls what needs packages"],
  ["docs/servers.md", "echo vllm", "needs a GPU"],
  ["docs/models.md", "npx tessera model push", "needs the internet"],
  ["docs/webhooks.md", "", "needs a receiver"],
  ["docs/alerts.md", "", "needs a receiver"],
  ["docs/models.md", "npx tessera deploy", "its weights are large"],
  ["docs/production.md", "certbot certonly", "needs a domain and its DNS"],
  ["docs/production.md", "curl https://tessera", "needs a domain with a certificate"],
  ["docs/python.md", "pip install", "needs pip and the sources"],
  ["docs/python.md", "export SERVICE_CLOUD", "a setting"],
  [
    "docs/python-services.md",
    "npx tessera deploy",
    "needs the package index, which is out of reach there: smoke.ts deploys in a container",
  ],
  ["docs/rust.md", "", "needs Rust"],
  ["docs/sandbox.md", "apt install bubblewrap", "the image with Python brings bubblewrap"],
  ["docs/tracing.md", "docker run", "needs Docker"],
  ["docs/scaling.md", "export DATABASE_URL", "needs three databases of Postgres"],
  ["docs/platform.md", "tessera admin nodes drain", "drains the node that the others run on"],
  ["docs/workers.md", "tessera machine drain", "needs a machine that has joined"],
  ["docs/workers.md", "export TESSERA_WORKER_TOKEN", "needs a machine with a GPU"],
  ["docs/workers.md", "tessera deploy service.py", "needs a machine with a GPU"],
  ["docs/workers.md", "tessera deploy manifest.json", "needs a program that is such a worker"],
];

/** Whether an entry of a list means this block. */
export function means([page, start]: readonly [...Block, ...unknown[]], block: DocumentedBlock) {
  const begins = typeof start === "string" ? block.text.startsWith(start) : start.test(block.text);
  return page === block.page && begins;
}
