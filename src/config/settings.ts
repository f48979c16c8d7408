/**
 * Settings as data. Each setting states once its name on the command line, in
 * the environment and in the file, its default and the reason for it;
 * parsing, `--help` and docs/configuration.md all follow from that.
 */
import { ConfigError, type Parse, withoutPasswords } from "./values.ts";

interface Description {
  /** As `--help` shows it, such as `-p, --port <port>`. Absent for secrets: others can see the command line. */
  readonly flag?: string;
  /** Absent where a variable that is set for other programs would change what is served. */
  readonly variable?: string;
  readonly summary: string;
  /** Why the default is what it is, or what to know before changing it. */
  readonly reason: string;
  /** Whether the flag may be given several times. Default: no. */
  readonly repeatable?: boolean;
  /** Returns true for a text that others must not see. */
  readonly isSecret?: (text: string) => boolean;
}

export interface Setting<Value> extends Description {
  /** The default, written as a person would write it. */
  readonly fallback: string | undefined;
  /** The default as people read it, where it follows from something else. */
  readonly shownDefault: string;
  /** Also called with nothing, where no source has it. */
  readonly parse: (given: Given | undefined, name: string) => Value;
}

/** What a source gives: a text, the texts of a repeatable flag, or that a flag without a text is there. */
type Given = string | readonly string[] | boolean;

/** The flags as they were typed, by the names that the command line gives them, such as `publicUrl`. */
export interface Flags {
  /** The file of settings. */
  readonly config?: string;
  readonly [name: string]: Given | undefined;
}

export type Settings = { readonly [key: string]: Setting<unknown> };

export type Values<Table extends Settings> = {
  readonly [Key in keyof Table]: Table[Key] extends Setting<infer Value> ? Value : never;
};

/** A setting that always has a value. Commas join the texts of a repeatable flag. */
export function setting<Value>(
  description: Description & { readonly fallback: string; readonly parse: Parse<Value> },
): Setting<Value> {
  const { fallback, parse } = description;
  return {
    ...description,
    shownDefault: fallback,
    parse: (given = fallback, name) => parse(String(given), name),
  };
}

/** A setting that may have no value; `shownDefault` says what happens then. */
export function optional<Value>(
  description: Description & { readonly shownDefault: string; readonly parse: Parse<Value> },
): Setting<Value | undefined> {
  const { parse } = description;
  return {
    ...description,
    fallback: undefined,
    parse: (given, name) => (given === undefined ? undefined : parse(String(given), name)),
  };
}

/** A flag that may be given several times, whose texts may have commas in them. Default: none. */
export function list<Value>(
  description: Description & { readonly parse: Parse<Value> },
): Setting<readonly Value[]> {
  const { parse } = description;
  return {
    ...description,
    repeatable: true,
    fallback: undefined,
    shownDefault: "none",
    parse: (given = [], name) => [given].flat().map((text) => parse(String(text), name)),
  };
}

/** A flag without a text. Default: off. */
export function toggle(description: Description): Setting<boolean> {
  return {
    ...description,
    fallback: undefined,
    shownDefault: "off",
    parse: (given) => given === true,
  };
}

/** The sources of settings. */
interface SettingSources {
  readonly flags: Flags;
  readonly env: NodeJS.ProcessEnv;
  readonly file?: ConfigFile | undefined;
}

/** A configuration file that has been read: texts by key. */
export interface ConfigFile {
  readonly path: string;
  readonly texts: { readonly [key: string]: string };
}

/** Reads each setting, flag before environment before file before default; throws a `ConfigError`. */
export function readSettings<Table extends Settings>(
  table: Table,
  sources: SettingSources,
): Values<Table> {
  const read = ([key, setting]: [string, Setting<unknown>]) => {
    const { given, name } = givenOf(key, setting, sources);
    return [key, setting.parse(given, name)];
  };
  return Object.fromEntries(Object.entries(table).map(read)) as Values<Table>;
}

/** What the first source that has a setting says, and how messages name it there. */
function givenOf(
  key: string,
  { flag, variable }: Setting<unknown>,
  { flags, env, file }: SettingSources,
): { readonly given: Given | undefined; readonly name: string } {
  const typed = flag === undefined ? undefined : flags[flagName(flag)];
  if (typed !== undefined) {
    return { given: typed, name: longFlag(flag ?? "") };
  }
  // Many tools leave a variable empty to unset it.
  if (variable !== undefined && env[variable]) {
    return { given: env[variable], name: variable };
  }
  return { given: file?.texts[key], name: `${key} in ${file?.path ?? "the configuration"}` };
}

/** A setting as people are shown it. */
export interface ShownSetting {
  /** The variable that sets it, or its flag where it has none. */
  readonly name: string;
  readonly summary: string;
  /** As it was written, without users and queries of addresses, or the default; empty for a secret. */
  readonly value: string;
  readonly isSet: boolean;
  /** It is set, and its value is a secret. */
  readonly isSecret: boolean;
}

/** All settings with their values. Of a secret it says only that it is set. */
export function shownSettings(table: Settings, sources: SettingSources): readonly ShownSetting[] {
  return Object.entries(table).map(([key, setting]) => {
    const { variable, flag = "", summary, shownDefault } = setting;
    const { given } = givenOf(key, setting, sources);
    const text = given === true ? "on" : [given ?? shownDefault].flat().join(",");
    const isSet = given !== undefined;
    const isSecret = isSet && setting.isSecret?.(text) === true;
    return {
      name: variable ?? longFlag(flag),
      summary,
      value: isSecret ? "" : withoutPasswords(text),
      isSet,
      isSecret,
    };
  });
}

/** `--public-url` of `--public-url <url>`. */
function longFlag(flag: string): string {
  const [long] = /--[a-z-]+/.exec(flag) ?? [];
  if (long === undefined) {
    throw new ConfigError(`${flag} has no long form`);
  }
  return long;
}

/** `publicUrl` of `--public-url <url>`. */
function flagName(flag: string): string {
  return longFlag(flag)
    .slice(2)
    .replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
