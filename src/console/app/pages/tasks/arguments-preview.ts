/**
 * The arguments of a task in a line, by their names. The platform gives the beginning of their JSON,
 * which may end anywhere: it is read as far as it goes, and `…` stands where something may follow.
 * Numbers stay as they are written.
 */

import { counted } from "../../ui/counted.ts";

/** Characters of JSON that are read; longer ones are cut. */
const MAX_READ_CHARACTERS = 1024 * 1024;

/** Items of a list that are kept; a line shows no more. */
const MAX_KEPT_ITEMS = 50;

/** Lists and objects in each other that are read: arguments have no more. */
const MAX_DEPTH = 200;

/** Characters of a value. */
const MAX_VALUE_CHARACTERS = 40;

/** Characters of a value that nothing follows. */
const MAX_LAST_CHARACTERS = 160;

/** Such as `mode: fast, tags: ["a", "b"], values: [0.1, 0.2, 0.3, …`. */
export function previewOf(json: string): string {
  const whole = new Beginning(json.slice(0, MAX_READ_CHARACTERS)).value();
  if (whole?.kind !== "object") {
    // A number alone is whole where its text is.
    return whole === undefined
      ? ""
      : textOf(whole.kind === "token" ? { ...whole, isCut: false } : whole);
  }
  const { members, isCut } = whole;
  const told = members.map(([name, value], index) => {
    const maxCharacters = index === members.length - 1 ? MAX_LAST_CHARACTERS : MAX_VALUE_CHARACTERS;
    return `${name}: ${value?.kind === "text" ? plainText(value, maxCharacters) : textOf(value, maxCharacters)}`;
  });
  return listed(told, isCut);
}

/** As far as JSON goes: whether more of a value may follow. A number at its end may have more digits. */
type Value =
  | { readonly kind: "token" | "text"; readonly text: string; readonly isCut: boolean }
  | { readonly kind: "list"; readonly items: readonly Value[]; count: number; isCut: boolean }
  | { readonly kind: "object"; readonly members: readonly Member[]; readonly isCut: boolean };

/** A name, with its value if that has begun. */
type Member = readonly [name: string, value: Value | undefined];

/** A value in about as many characters as one may have. What is cut has no end, such as `[1, 2, …`. */
function textOf(value: Value | undefined, maxCharacters = MAX_VALUE_CHARACTERS): string {
  switch (value?.kind) {
    case undefined:
      return "…";
    case "token":
      return plainText(value, maxCharacters);
    case "text":
      return `"${plainText(value, maxCharacters)}${value.isCut ? "" : '"'}`;
    case "list": {
      const { items, count, isCut } = value;
      const shown = firstOf(
        items.map((item) => textOf(item, maxCharacters)),
        maxCharacters,
      );
      // How many there are is known where all are there.
      return !isCut && shown.length < count
        ? counted(count, "item")
        : `[${listed(shown, isCut)}${isCut ? "" : "]"}`;
    }
    case "object": {
      const { members, isCut } = value;
      const shown = firstOf(
        members.map(([name, member]) => `${name}: ${textOf(member, maxCharacters)}`),
        maxCharacters,
      );
      return `{${listed(shown, isCut || shown.length < members.length)}${isCut ? "" : "}"}`;
    }
  }
}

/** A text without the quotes of JSON. */
function plainText({ text, isCut }: { text: string; isCut: boolean }, maxCharacters: number) {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > maxCharacters || isCut ? `${line.slice(0, maxCharacters)}…` : line;
}

/** The first values that fit, one at least. */
function firstOf(texts: readonly string[], maxCharacters: number): readonly string[] {
  let left = maxCharacters;
  const end = texts.findIndex(({ length }, index) => {
    left -= length;
    return index > 0 && left < 0;
  });
  return end === -1 ? texts : texts.slice(0, end);
}

/** With `…` behind them where there may be more, unless the last says so itself. */
const listed = (texts: readonly string[], hasMore: boolean): string =>
  [...texts, ...(hasMore && !texts.at(-1)?.endsWith("…") ? ["…"] : [])].join(", ");

const SPACE = /\s*/y;
const TOKEN = /[^\s"[\]{}:,]+/y;
/** A string without the quote at its end, and without an escape that is cut. */
const STRING = /"(?:[^"\\]+|\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))*/y;
const CONTROL = /\p{Cc}/gu;

/** Reads JSON (RFC 8259) that may end anywhere. What is no JSON is read up to its fault. */
class Beginning {
  readonly #json: string;
  #at = 0;
  #depth = 0;

  constructor(json: string) {
    this.#json = json;
  }

  /** Undefined where none begins. */
  value(): Value | undefined {
    if (this.#depth > MAX_DEPTH) {
      return undefined;
    }
    switch (this.#next()) {
      case '"':
        return { kind: "text", ...this.#string() };
      case "[":
        return this.#list();
      case "{":
        return this.#object();
      default: {
        const text = this.#take(TOKEN);
        const isCut = this.#at === this.#json.length;
        return text === "" ? undefined : { kind: "token", text, isCut };
      }
    }
  }

  #list(): Value {
    const items: Value[] = [];
    let count = 0;
    const isCut = this.#untilEnd("]", () => {
      const item = this.value();
      // The beginning of a number is another number, and its place says nothing.
      if (item !== undefined && !(item.kind === "token" && item.isCut)) {
        count += 1;
        if (count <= MAX_KEPT_ITEMS) {
          items.push(item);
        }
      }
      return item !== undefined;
    });
    return { kind: "list", items, count, isCut };
  }

  #object(): Value {
    const members: Member[] = [];
    const isCut = this.#untilEnd("}", () => {
      const name = this.#next() === '"' ? this.#string() : undefined;
      if (name === undefined || name.isCut) {
        return false;
      }
      const hasBegun = this.#next() === ":";
      this.#at += hasBegun ? 1 : 0;
      const value = hasBegun ? this.value() : undefined;
      members.push([name.text, value]);
      return value !== undefined;
    });
    return { kind: "object", members, isCut };
  }

  /** Reads what is between brackets; whether it ends before the closing one. */
  #untilEnd(close: string, readOne: () => boolean): boolean {
    this.#at++;
    this.#depth++;
    let next = this.#next() === close ? close : ",";
    while (next === "," && readOne()) {
      next = this.#next() ?? "";
      this.#at += next === "," ? 1 : 0;
    }
    this.#at += next === close ? 1 : 0;
    this.#depth--;
    return next !== close;
  }

  #string(): { readonly text: string; readonly isCut: boolean } {
    const raw = this.#take(STRING);
    const isCut = this.#json[this.#at] !== '"';
    this.#at += isCut ? this.#json.length : 1;
    return { text: JSON.parse(`${raw.replaceAll(CONTROL, " ")}"`) as string, isCut };
  }

  /** The next character behind white space. */
  #next(): string | undefined {
    this.#take(SPACE);
    return this.#json[this.#at];
  }

  #take(what: RegExp): string {
    what.lastIndex = this.#at;
    const [text = ""] = what.exec(this.#json) ?? [];
    this.#at += text.length;
    return text;
  }
}
