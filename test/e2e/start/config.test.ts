import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { CONFIGURATION_PATH, configurationDocument } from "../../../scripts/configuration.ts";
import { SERVICE_LIMITS } from "../../../src/config/limits.ts";
import type { Flags } from "../../../src/config/settings.ts";
import { readDataConfig, readStartConfig } from "../../../src/config/start.ts";
import { START_SETTINGS } from "../../../src/config/start-settings.ts";
import { ConfigError } from "../../../src/config/values.ts";

const folder = mkdtempSync(join(tmpdir(), "tessera-config-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;

/** The path of a file of settings. */
function file(content: unknown, mode = 0o600): string {
  files += 1;
  const path = join(folder, `${files}.json`);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  chmodSync(path, mode);
  return path;
}

const read = (flags: Flags = {}, env: NodeJS.ProcessEnv = {}) => readStartConfig(flags, env);

describe("the configuration of start", () => {
  it("is shown with what is set, and without secrets", () => {
    const { shown } = read(
      { port: "3001", label: ["gpu=h200", "zone=b"] },
      {
        DATABASE_URL: "postgres://ada:sesame@db.example/tessera",
        TESSERA_METRICS_TOKEN: "sesame",
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://ada:sesame@traces.example:4318",
        TESSERA_HOST: "",
      },
    ).config;
    const of = (name: string) => shown.find((one) => one.name === name);
    expect(of("TESSERA_PORT")).toEqual({
      name: "TESSERA_PORT",
      summary: START_SETTINGS.port.summary,
      value: "3001",
      isSet: true,
      isSecret: false,
    });
    expect(of("TESSERA_LABELS")).toMatchObject({ value: "gpu=h200,zone=b", isSet: true });
    expect(of("TESSERA_HOST")).toMatchObject({ value: "localhost", isSet: false });
    expect(of("DATABASE_URL")).toMatchObject({ value: "", isSet: true, isSecret: true });
    expect(of("TESSERA_METRICS_TOKEN")).toMatchObject({ value: "", isSet: true, isSecret: true });
    expect(of("OTEL_EXPORTER_OTLP_ENDPOINT")?.value).toBe("http://…@traces.example:4318");
    expect(shown).toHaveLength(Object.keys(START_SETTINGS).length);
    expect(JSON.stringify(shown)).not.toContain("sesame");
  });

  it.each([
    ["DATABASE_URL", "postgres://db.example/tessera?user=ada&password=sesame", ""],
    [
      "DATABASE_URL",
      "postgres://db.example/tessera?sslmode=verify-full",
      "postgres://db.example/tessera?…",
    ],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "http://ada:se,same@traces.example", "http://…@traces.example"],
    [
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      "http://ada:a@sesame@traces.example",
      "http://…@traces.example",
    ],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "http:/ada:sesame@traces.example", "http://…@traces.example"],
    [
      "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
      "https://traces.example/v1?key=sesame",
      "https://traces.example/v1?…",
    ],
    [
      "OTEL_RESOURCE_ATTRIBUTES",
      "a=1,b=http://ada:sesame@c.example/d",
      "a=1,b=http://…@c.example/d",
    ],
    [
      "TESSERA_MODEL_BUCKETS",
      "acme=s3://weights/acme,*=s3://shared",
      "acme=s3://weights/acme,*=s3://shared",
    ],
  ])("shows of %s=%s only %j", (name, text, value) => {
    const { shown } = read({}, { [name]: text }).config;
    expect(shown.find((one) => one.name === name)).toMatchObject({
      value,
      isSet: true,
      isSecret: value === "",
    });
  });

  it.each([
    "http:/ada:sesame@accounts.example",
    "http:ada:sesame@accounts.example",
    "//sesame@accounts.example",
    "http://ada:ses#ame@accounts.example",
    "http://accounts.example/?key=sesame",
  ])("quotes no password of a wrong address, %j", (TESSERA_OIDC_ISSUER) => {
    const refused = () => read({ oidcClientId: "tessera" }, { TESSERA_OIDC_ISSUER });
    expect(refused).toThrow(/^TESSERA_OIDC_ISSUER must be [^@?]*("http:|"\/\/)/);
    expect(refused).not.toThrow(/ses|ame@/);
  });

  it("is for a first try on one machine by default", () => {
    const { config, secrets } = read();
    expect(config).toEqual({
      dataFolder: resolve(".tessera"),
      migrate: "auto",
      databaseWaitMs: 60_000,
      host: "localhost",
      port: 3000,
      publicUrl: undefined,
      platformDomain: undefined,
      appsDomain: "apps.localhost",
      trustedProxies: [],
      allowedOrigins: [],
      logLevel: "info",
      logsCalls: false,
      sessionLifetimeMs: 14 * 24 * 3_600_000,
      sharedPort: undefined,
      drainDelayMs: 5_000,
      gpuStayMs: 60_000,
      drainMs: 10_000,
      bodyBudgetBytes: 512 * 1024 * 1024,
      connections: expect.anything(),
      blobs: { kind: "folder", folder: resolve(".tessera/blobs") },
      allowsNativeCode: false,
      sandbox: "auto",
      searchPath: "",
      allowedEgress: [],
      modelHub: "https://huggingface.co",
      modelBuckets: [],
      s3: { endpoint: undefined, region: "us-east-1" },
      maxModelsBytes: 100 * 1024 ** 3,
      ceilings: {
        ...{ workers: 100, memoryMib: 65_536, cpu: 64, processes: 256, deployments: 1_000 },
        retentionMs: 365 * 24 * 3_600_000,
        storageBytes: 20 * 1024 ** 3,
      },
      budget: config.budget,
      externalLabels: {},
      ...SERVICE_LIMITS,
      maxJsonBodyBytes: 64 * 1024 ** 2,
      maxCacheBytes: 20 * 1024 ** 3,
      oidc: undefined,
      organizationCreators: undefined,
      tracing: undefined,
      labels: {},
      python: {
        interpreters: [],
        maxBytesPerOrganization: 20 * 1024 ** 3,
        needsSandbox: true,
        uv: undefined,
      },
      shown: expect.any(Array),
    });
    expect(secrets).toEqual({
      database: resolve(".tessera/tessera.db"),
      cells: [],
      keys: undefined,
      oidcClientSecret: undefined,
      metricsToken: undefined,
      prometheusUrl: undefined,
      proxySecret: undefined,
      smtp: undefined,
      tracing: undefined,
      packages: {},
    });
    expect(Object.isFrozen(config) && Object.isFrozen(secrets)).toBe(true);
  });

  it("bounds what deployments may ask for as the operator says", () => {
    const env = {
      TESSERA_MAX_WORKERS_PER_DEPLOYMENT: "8",
      TESSERA_MAX_CPU_PER_WORKER: "0.5",
      TESSERA_MAX_PROCESSES_PER_WORKER: "16",
      TESSERA_MAX_DEPLOYMENTS: "20",
      TESSERA_MAX_ORGANIZATION_STORAGE: "1GiB",
    };
    expect(read({ maxMemoryPerWorker: "2GiB" }, env).config.ceilings).toEqual({
      workers: 8,
      memoryMib: 2_048,
      cpu: 0.5,
      processes: 16,
      deployments: 20,
      retentionMs: 365 * 24 * 3_600_000,
      storageBytes: 1024 ** 3,
    });
    for (const maxCpuPerWorker of ["0", "65", "1e1", "half"]) {
      const message = "--max-cpu-per-worker must be a number from 0.1 to 64";
      expect(() => read({ maxCpuPerWorker })).toThrow(message);
    }
  });

  it("bounds open connections by the open files of the process, unless the operator says how many", () => {
    const { total, perAddress } = read().config.connections;
    expect(total).toBeGreaterThan(0);
    expect(total).toBeLessThanOrEqual(20_000);
    expect(perAddress).toBe(Math.ceil(total / 4));
    const env = { TESSERA_MAX_CONNECTIONS_PER_ADDRESS: "70" };
    expect(read({ maxConnections: "300" }, env).config.connections).toEqual({
      total: 300,
      perAddress: 70,
    });
    expect(read({ maxConnections: "60" }, env).config.connections.perAddress).toBe(60);
  });

  it("takes the flag before the variable, that before the file, and that before the default", () => {
    const config = file({ port: 4001, host: "::1", logLevel: "warn" });
    const env = { TESSERA_PORT: "4002", TESSERA_HOST: "::2", TESSERA_CONFIG: config };
    expect(read({ port: "4003" }, env).config).toMatchObject({
      port: 4003,
      host: "::2",
      logLevel: "warn",
      appsDomain: "apps.localhost",
    });
    expect(read({ config }, { TESSERA_PORT: "" }).config.port).toBe(4001);
  });

  it("takes lists, sizes and times in the file", () => {
    const config = file({
      trustedProxies: ["10.0.0.0/8", "2001:db8::/32"],
      bodyBudget: "1GiB",
      sessionLifetime: "12h",
      publicUrl: "https://Tessera.example.com/",
    });
    expect(read({ config }).config).toMatchObject({
      trustedProxies: ["10.0.0.0/8", "2001:db8::/32"],
      bodyBudgetBytes: 1024 ** 3,
      sessionLifetimeMs: 12 * 3_600_000,
      publicUrl: "https://tessera.example.com",
    });
  });

  it("keeps secrets apart", () => {
    const env = {
      DATABASE_URL: "postgres://me:hidden-1@host/db",
      TESSERA_KEYS: "hidden-2",
      TESSERA_OIDC_CLIENT_SECRET: "hidden-3",
      TESSERA_OIDC_ISSUER: "https://accounts.example.com",
      TESSERA_OIDC_CLIENT_ID: "tessera",
    };
    const { config, secrets } = read({}, env);
    expect(JSON.stringify(config)).not.toContain("hidden");
    expect(secrets).toEqual({
      database: env.DATABASE_URL,
      cells: [],
      keys: "hidden-2",
      oidcClientSecret: "hidden-3",
      packages: {},
    });
    expect(config.oidc).toEqual({
      issuer: "https://accounts.example.com",
      clientId: "tessera",
      name: "single sign-on",
    });
  });

  it.each([
    [{ port: "80x" }, "--port"],
    [{ host: "" }, "--host"],
    [{ publicUrl: "tessera.example.com" }, "--public-url"],
    [{ publicUrl: "https://example.com/tessera" }, "--public-url"],
    [{ publicUrl: "https://me:secret@example.com" }, "--public-url"],
    [{ platformDomain: "https://example.com" }, "--platform-domain"],
    [{ publicUrl: "https://www.example.com", platformDomain: "example.com" }, "--platform-domain"],
    [{ appsDomain: "apps_.localhost" }, "--apps-domain"],
    [{ trustedProxies: "10.0.0.0/33" }, "--trusted-proxies"],
    [{ cors: "app.example.com" }, "--cors"],
    [{ cors: "https://app.example.com/path" }, "--cors"],
    [{ cors: "https://app.example.com,*" }, "--cors"],
    [{ cors: "null" }, "--cors"],
    [{ trustedProxies: "proxy.example.com" }, "--trusted-proxies"],
    [{ logLevel: "loud" }, "--log-level"],
    [{ sessionLifetime: "1s" }, "--session-lifetime"],
    [{ drainTime: "ten" }, "--drain-time"],
    [{ sharedPort: "0", database: "postgres://me@host/db" }, "--shared-port"],
    [{ sharedPort: "3000", database: "postgres://me@host/db" }, "a --port of its own"],
    [{ sharedPort: "80" }, "one Postgres"],
    [
      { sharedPort: "80", database: "postgres://me@host/db", sandbox: "permission" },
      "--sandbox kernel",
    ],
    [{ sharedPort: "80", database: "postgres://me@host/db", pythonSandbox: "none" }, "in Python"],
    [{ bodyBudget: "1MB" }, "--body-budget"],
    [{ oidcIssuer: "https://accounts.example.com" }, "--oidc-client-id"],
    [{ oidcClientId: "tessera" }, "--oidc-issuer"],
    [{ oidcIssuer: "http://accounts.example.com", oidcClientId: "tessera" }, "--oidc-issuer"],
    [{ database: ":memory:" }, "--database"],
    [{ database: "mysql://me:secret@host/db" }, "--database"],
    [{ config: "/nowhere/at/all.json" }, "/nowhere/at/all.json"],
  ])("refuses what cannot be, and names it: %j", (flags, name) => {
    expect(() => read(flags)).toThrow(ConfigError);
    expect(() => read(flags)).toThrow(name);
    expect(() => read(flags)).not.toThrow("me:secret");
  });

  it("names the variable or the key of the file that cannot be", () => {
    expect(() => read({}, { TESSERA_PORT: "none" })).toThrow("TESSERA_PORT must be");
    const config = file({ port: 70_000 });
    expect(() => read({ config })).toThrow(`port in ${config} must be`);
  });

  it("refuses a file that is none, without repeating what is in it", () => {
    for (const content of ['{"keys": "hidden"', "[]", '"hidden"', '{"port": {"is": "hidden"}}']) {
      const config = file(content);
      expect(() => read({ config })).toThrow(config);
      expect(() => read({ config })).not.toThrow("hidden");
    }
    expect(() => read({ config: file({ prot: 1 }) })).toThrow('no setting "prot"');
  });

  it("refuses secrets in a file that others can read", () => {
    const content = { database: "postgres://me:hidden@host/db" };
    expect(() => read({ config: file(content, 0o644) })).toThrow("chmod 600");
    expect(read({ config: file(content, 0o600) }).secrets.database).toContain("hidden");
    expect(read({ config: file({ database: "./a.db" }, 0o644) }).secrets.database).toBe(
      resolve("a.db"),
    );
  });

  it("is the same for the operator's commands, as far as they need it", () => {
    const config = file({ dataFolder: folder, port: 8080, oidcIssuer: "not looked at" });
    expect(readDataConfig({ config }, {})).toEqual({
      config: { dataFolder: folder },
      secrets: { database: join(folder, "tessera.db"), keys: undefined },
    });
  });

  it("is described as it is in docs/configuration.md (node scripts/configuration.ts writes it)", () => {
    expect(readFileSync(CONFIGURATION_PATH, "utf8")).toBe(configurationDocument());
  });
});

describe("the mail server", () => {
  const from = { mailFrom: "tessera@example.com" };
  const smtp = (url: string) => read({ ...from, smtpUrl: url }).secrets.smtp;

  it("is named by flag, environment or file, and is apart from what may be printed", () => {
    const url = "smtps://me%40corp:p%23ss@mail.example.com";
    const env = { TESSERA_SMTP_URL: url, TESSERA_MAIL_FROM: from.mailFrom };
    const path = file({ smtpUrl: url, ...from });
    for (const read of [
      readStartConfig({ smtpUrl: url, ...from }, {}),
      readStartConfig({}, env),
      readStartConfig({ config: path }, {}),
    ]) {
      expect(read.secrets.smtp).toEqual({
        host: "mail.example.com",
        port: 465,
        secure: true,
        login: { user: "me@corp", password: "p#ss" },
        from: "tessera@example.com",
      });
      expect(JSON.stringify(read.config)).not.toContain("p#ss");
    }
    const open = file({ smtpUrl: url, ...from }, 0o644);
    expect(() => readStartConfig({ config: open }, {})).toThrow(
      "smtpUrl and can be read by others",
    );
  });

  it("has the port of its protocol, and needs no login", () => {
    expect(smtp("smtp://mail")).toMatchObject({ port: 587, secure: false, login: undefined });
    expect(smtp("smtp://[::1]:25")).toMatchObject({ host: "::1", port: 25 });
  });

  it.each([
    "http://me:hunter2@mail",
    "mail.example.com",
    "smtp://",
    "smtp://mail/path",
    "smtp://mail?tls=no",
    "smtp://me@mail",
    "smtp://me:%E0%A4%A@mail",
  ])("is not %j, which is not quoted", (url) => {
    const attempt = (): unknown => smtp(url);
    expect(attempt).toThrow(ConfigError);
    expect(attempt).toThrow(/^--smtp-url/);
    expect(attempt).not.toThrow(/hunter2/);
  });

  it("needs a sender, which is an address", () => {
    expect(() => read({ smtpUrl: "smtp://mail" })).toThrow("set --mail-from too");
    expect(() => read(from)).toThrow("set --smtp-url too");
    expect(() => read({ smtpUrl: "smtp://mail", mailFrom: "me" })).toThrow("--mail-from must be");
  });

  it("grants places of S3 to organizations", () => {
    const granted = (text: string) =>
      readStartConfig({ modelBuckets: text }, {}).config.modelBuckets;
    expect(granted("")).toEqual([]);
    expect(granted("acme=s3://weights/acme/v1/, *=s3://shared")).toEqual([
      { organization: "acme", bucket: "weights", prefix: "acme/v1" },
      { organization: "*", bucket: "shared", prefix: "" },
    ]);
    for (const wrong of [
      "weights",
      "acme=weights",
      "=s3://weights",
      "acme=s3://weights/../x",
      "acme=s3://w",
    ]) {
      expect(() => granted(wrong)).toThrow(/--model-buckets must be places of S3/);
    }
  });

  it("grants nobody what the platform stores of everybody", () => {
    const grant = (place: string) => () =>
      readStartConfig({ blobs: "s3://ours/files", modelBuckets: `acme=s3://${place}` }, {});
    for (const place of ["ours", "ours/files", "ours/files/acme"]) {
      expect(grant(place)).toThrow(
        /--model-buckets lets acme read .* \(--blobs s3:\/\/ours\/files\/\)/,
      );
    }
    for (const place of ["ours/file", "ours/files-2", "other/files"]) {
      expect(grant(place)).not.toThrow();
    }
  });
});
