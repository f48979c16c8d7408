/** Where the commands of the documents are run, and why the others are not. */

/** A page, and what a block of commands in it begins with. */
type Block = readonly [page: string, start: string];

/** Those that `commands.test.ts` here runs. */
export const HERE: readonly Block[] = [
  ["README.md", "curl http://localhost:3000/summarize"],
  ["docs/calls.md", "npx buf curl"],
  ["docs/calls.md", "npx tessera call summarize"],
  ["docs/deploy.md", "npx tessera deploy examples"],
  ["docs/deploy.md", "curl http://summarizer"],
  ["docs/deploy.md", "app=http://summarizer"],
  ["docs/upgrade.md", "tessera admin migrate"],
  ["docs/backup.md", "tessera admin backup"],
  ["examples/summarizer/README.md", "curl -s localhost:3000/summarize"],
  ["examples/summarizer/README.md", "jq -Rs"],
  ["examples/summarizer/README.md", "id=$(for article"],
  ["examples/digits/README.md", "curl -s localhost:3000/classify"],
  ["examples/digits/README.md", "cd examples/digits/images"],
  ["examples/digits/README.md", "id=$(curl -s localhost:3000/contact_sheet"],
  ["examples/digits/README.md", "curl -s localhost:3000/metrics"],
];

/** Pages whose commands a test of their own runs. */
export const TESTED_BY: { readonly [page: string]: string } = {
  "docs/http.md": "test/e2e/docs/http.test.ts",
  "docs/typescript.md": "test/e2e/docs/install.test.ts",
  "docs/go.md": "test/e2e/clients/stubs.test.ts",
  "docs/grpc.md": "test/e2e/clients/stubs.test.ts",
};

export const NOT_RUN: readonly (readonly [...Block, reason: string])[] = [
  ["README.md", "npm ci && npm start", "test/e2e/examples/start.test.ts runs the same script"],
  ["README.md", "npm ci && npm test", "it is what CI runs"],
  ["docs/quickstart.md", "npm ci && npm start", "test/e2e/examples/start.test.ts runs the same"],
  [
    "docs/quickstart.md",
    "npx tessera-platform init",
    "test/e2e/docs/first-hour.test.ts runs these",
  ],
  ["docs/typescript-services.md", "npx tessera serve", "watches until it is stopped"],
  [
    "docs/quickstart.md",
    "npx tessera serve examples",
    "runs until it is stopped: the calls above need it",
  ],
  ["README.md", "npx tessera serve service.ts", "watches until it is stopped"],
  ["README.md", "npx tessera serve service.py", "watches until it is stopped"],
  ["docs/platform.md", "npx tessera start", "runs until it is stopped: test/e2e/start does it"],
  ["docs/platform.md", "npx tessera admin setup", "asks for a password in a terminal"],
  ["docs/platform.md", "npx tessera cloud login", "a person confirms it in a browser"],
  ["docs/platform.md", "TESSERA_SMTP_URL=", "needs a mail server: test/e2e/start has its own"],
  ["docs/deploy.md", "npx tessera deployment update", "asks for a password in a terminal"],
  ["docs/deploy.md", "npx tessera token create gpu-1", "needs a machine with that name and label"],
  ["CONTRIBUTING.md", "npm ci ", "they are what CI and contributors run"],
  ["CONTRIBUTING.md", "TESSERA_FUZZ_SECONDS", "an hour; CI runs a minute of it"],
  ["CONTRIBUTING.md", "TESSERA_BACKUP_SECONDS", "a minute of load; CI runs two seconds"],
  ["CONTRIBUTING.md", "TESSERA_RESTARTS", "ten restarts; CI runs two"],
  ["CONTRIBUTING.md", "TESSERA_LIVE_SECONDS", "a minute; CI runs five seconds"],
  ["CONTRIBUTING.md", "TESSERA_BENTOML_VERSIONS", "more versions than CI installs"],
  ["CONTRIBUTING.md", "for name in ocr filetype", "the wheels of the models are large"],
  ["CONTRIBUTING.md", "TESSERA_SCHEMATHESIS_SECONDS", "ten minutes; CI runs some seconds"],
  ["bench/README.md", "npm run build", "benchmarks take minutes and a quiet machine"],
  ["docs/sizing.md", "npm run bench", "benchmarks take minutes and a quiet machine"],
  ["docs/production.md", "certbot certonly", "needs a domain and its DNS"],
  ["docs/production.md", "curl https://tessera", "test/e2e/docs/production.test.ts asks the same"],
  ["docs/backup.md", "pg_dump", "the Postgres of the tests brings no pg_dump"],
  ["docs/backup.md", "createdb", "the Postgres of the tests brings no pg_restore"],
  ["docs/high-availability.md", "DATABASE_URL", "a setting with names of others' machines"],
  ["docs/high-availability.md", "pgbackrest", "needs pgBackRest and a bucket"],
  ["docs/python.md", "pip install", "test/e2e/clients/python.test.ts installs it"],
  ["docs/python.md", "export SERVICE_CLOUD", "a setting"],
  ["docs/python-services.md", "npx tessera serve", "watches: test/e2e/python serves"],
  ["docs/python-services.md", "npx tessera deploy", "test/e2e/python/deploy.test.ts deploys"],
  ["docs/servers.md", "pip install", "needs packages: test/e2e/python/mounts.test.ts serves such"],
  ["docs/servers.md", "curl", "calls it: test/e2e/python/mounts.test.ts calls such"],
  ["docs/models.md", "npx tessera model push", "needs the internet: test/e2e/cli/model.test.ts"],
  ["docs/models.md", "npx tessera deploy", "its weights are large: test/e2e/python/deploy.test.ts"],
  ["docs/coming-from-bentoml.md", "npx tessera-platform", "test/e2e/clients serves such files"],
  ["docs/sandbox.md", "apt install bubblewrap", "changes the machine: .ci/run installs it"],
  ["docs/tracing.md", "OTEL_EXPORTER", "runs until it is stopped: test/e2e/tracing does it"],
  ["docs/tracing.md", "docker run", "needs Docker"],
  ["docs/workers.md", "tessera token create", "test/e2e/workers makes such tokens"],
  ["docs/workers.md", "export TESSERA_WORKER_TOKEN", "needs a machine with a GPU"],
  ["docs/workers.md", "tessera deploy service.py", "needs a machine with a GPU"],
  ["docs/workers.md", "tessera deploy manifest.json", "test/e2e/workers deploys manifests"],
  ["docs/cli.md", "source <(tessera completion", "test/e2e/cli/completion.test.ts asks the shells"],
  ["docs/install.md", "npm ci && npm pack", "test/e2e/docs/first-hour.test.ts packs and installs"],
  ["docs/install.md", "npm run package:image", "npm run package:check runs these with each image"],
  ["docs/install.md", "export POSTGRES_PASSWORD", "needs Docker"],
  ["docs/install.md", "mkdir -p /opt/tessera", "changes the machine"],
  [
    "docs/install.md",
    "kubectl create secret",
    "needs a cluster: npm run package:check asks a server",
  ],
  ["docs/install.md", "sha256sum --check", "npm run package:check makes a release and checks it"],
  ["examples/summarizer/README.md", "npx tessera serve", "runs until it is stopped"],
  ["examples/digits/README.md", "npx tessera serve", "runs until it is stopped"],
  ["examples/digits/README.md", "npm install --no-save", "trains a network for minutes"],
  ["clients/proto/README.md", "protoc", "test/e2e/clients/stubs.test.ts compiles the same files"],
  ["clients/python/README.md", "pip install tessera-platform", "needs a release"],
  ["clients/python/README.md", "pip install -e", "test/e2e/clients/python.test.ts runs these"],
];

/** Pages of which nothing is run here, and why. */
export const NOT_RUN_PAGES: { readonly [page: string]: string } = {
  "examples/generator/README.md": "its test is test/e2e/examples/python.test.ts",
  "examples/speech/README.md": "it needs ffmpeg; its test is test/e2e/examples/python.test.ts",
  "examples/filetype/README.md": "its model is large; test/e2e/examples/python.test.ts reads it",
  "examples/ocr/README.md": "its model is large; test/e2e/examples/python.test.ts reads it",
  "examples/worker-go/README.md": "test/e2e/workers/go.test.ts builds and runs this worker",
};
