/** People at their command lines before one platform that runs in this process. */
import { createTesseraClient, type TesseraClient } from "../../../src/client/index.ts";
import { Folder, type Platform, type PlatformOptions, start } from "../start/platform.ts";
import { type Outcome, Person } from "./person.ts";

export interface Scene extends AsyncDisposable {
  readonly platform: Platform;
  /** The admin of acme, logged in. */
  readonly ada: Person;
  readonly adaCookie: Record<string, string>;
  /** A client without a credential of its own. */
  readonly client: TesseraClient;
  /** Logs somebody in with a token. */
  logIn(person: Person, value: string): Promise<Outcome>;
}

/** A token for longer than those that it makes. */
const LAPTOP = { name: "ada's laptop", expires_at: "2100-01-01T00:00:00Z" };

/** A platform with the organization acme. */
export async function scene(options: PlatformOptions = {}): Promise<Scene> {
  const folder = new Folder();
  const platform = await start(folder, options);
  const adaCookie = await platform.setUp("ada@example.com");
  const ada = new Person();
  const logIn = (person: Person, value: string) =>
    person.run(["cloud", "login", "--endpoint", platform.url, "--api-token", "-"], {
      input: `${value}\n`,
    });
  await logIn(ada, (await platform.createToken(adaCookie, LAPTOP)).value);
  return {
    platform,
    ada,
    adaCookie,
    client: createTesseraClient({ url: platform.url }),
    logIn,
    async [Symbol.asyncDispose]() {
      await platform[Symbol.asyncDispose]();
      ada[Symbol.dispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** The JSON that a command wrote. */
export function json({ stdout }: Outcome): Record<string, unknown> {
  return JSON.parse(stdout) as Record<string, unknown>;
}
