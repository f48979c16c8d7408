/**
 * Shapes: JSON Schemas reduced to a form that can be merged, with references
 * followed and `allOf`, `anyOf` and `oneOf` combined. `intersect` is `allOf`;
 * `unite` is `anyOf` and `oneOf`.
 *
 * A shape accepts at least what its schema accepts. It is for descriptions;
 * validation uses the schema itself.
 */

/** A description of values, without references and unions. */
export interface Shape {
  /** The JSON types of the values. Default: any. */
  readonly types?: readonly string[];
  readonly properties?: { readonly [name: string]: Shape };
  readonly required?: readonly string[];
  /** The shape of an array's items. */
  readonly items?: Shape;
  /** True when the schema says that an object may have further properties. */
  readonly open?: boolean;
  /** Everything else: bounds, formats, titles. */
  readonly keywords: { readonly [keyword: string]: unknown };
}

/** The shape that accepts every value. */
export const ANYTHING: Shape = { keywords: {} };

const RAISED = new Set(["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"]);
const LOWERED = new Set(["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"]);

/** The shape of values that fit both. Where they contradict each other, the second one wins. */
export function intersect(first: Shape, second: Shape): Shape {
  const required = new Set([...(first.required ?? []), ...(second.required ?? [])]);
  return {
    ...defined({
      types: commonTypes(first.types, second.types),
      properties: joinProperties([first, second], intersectAll),
      required: required.size > 0 ? [...required] : undefined,
      items: first.items && second.items ? intersect(first.items, second.items) : undefined,
    }),
    ...onlyOne(first.items, second.items),
    ...(first.open || second.open ? { open: true } : {}),
    keywords: intersectKeywords(first.keywords, second.keywords),
  };
}

/** The shape of values that fit any of them; `null` among them only makes it nullable. */
export function unite(shapes: readonly Shape[]): Shape {
  const present = shapes.filter((shape) => !isNull(shape));
  const [only] = present;
  if (!only) {
    return shapes[0] ?? ANYTHING;
  }
  const nullable = present.length < shapes.length;
  const united = present.length === 1 ? only : uniteSeveral(present);
  return nullable && united.types
    ? { ...united, types: unionOf([united.types, ["null"]]) }
    : united;
}

function uniteSeveral(shapes: readonly Shape[]): Shape {
  const types = shapes.every((shape) => shape.types)
    ? unionOf(shapes.map((shape) => shape.types ?? []))
    : undefined;
  const kept = types?.filter((type) => type !== "null");
  const keywords = { ...sharedKeywords(shapes), ...unitedEnum(shapes) };
  if (kept?.length !== 1) {
    return { ...defined({ types }), keywords };
  }
  if (kept[0] === "object") {
    const required = requiredInAll(shapes);
    return {
      ...defined({ types, properties: joinProperties(shapes, unite) }),
      ...(required.length > 0 ? { required } : {}),
      ...(shapes.some((shape) => shape.open) ? { open: true } : {}),
      keywords,
    };
  }
  const items = shapes.map((shape) => shape.items ?? ANYTHING);
  return {
    ...defined({ types }),
    ...(kept[0] === "array" ? { items: unite(items) } : {}),
    keywords,
  };
}

function isNull(shape: Shape): boolean {
  return shape.types?.length === 1 && shape.types[0] === "null";
}

function intersectAll(shapes: readonly Shape[]): Shape {
  return shapes.reduce(intersect);
}

function onlyOne(first: Shape | undefined, second: Shape | undefined): { items?: Shape } {
  const items = first && second ? undefined : (first ?? second);
  return items ? { items } : {};
}

function commonTypes(
  first: readonly string[] | undefined,
  second: readonly string[] | undefined,
): readonly string[] | undefined {
  if (!first || !second) {
    return first ?? second;
  }
  const accepts = (types: readonly string[], type: string) =>
    types.includes(type) || (type === "integer" && types.includes("number"));
  const common = unionOf([
    first.filter((type) => accepts(second, type)),
    second.filter((type) => accepts(first, type)),
  ]);
  return common.length > 0 ? common : second;
}

/** All types of the lists, each once; `number` makes `integer` superfluous. */
function unionOf(lists: readonly (readonly string[])[]): readonly string[] {
  const all = new Set(lists.flat());
  if (all.has("number")) {
    all.delete("integer");
  }
  return [...all];
}

function joinProperties(
  shapes: readonly Shape[],
  join: (shapes: readonly Shape[]) => Shape,
): Shape["properties"] {
  const lists = new Map<string, Shape[]>();
  for (const shape of shapes) {
    for (const [name, property] of Object.entries(shape.properties ?? {})) {
      lists.set(name, [...(lists.get(name) ?? []), property]);
    }
  }
  if (!shapes.some((shape) => shape.properties)) {
    return undefined;
  }
  return Object.fromEntries([...lists].map(([name, list]) => [name, join(list)]));
}

function requiredInAll(shapes: readonly Shape[]): string[] {
  const [first, ...others] = shapes.map((shape) => shape.required ?? []);
  return (first ?? []).filter((name) => others.every((required) => required.includes(name)));
}

function intersectKeywords(first: Shape["keywords"], second: Shape["keywords"]) {
  const keywords: Record<string, unknown> = { ...first, ...second };
  for (const keyword of Object.keys(first)) {
    const [one, other] = [first[keyword], second[keyword]];
    if (typeof one === "number" && typeof other === "number") {
      if (RAISED.has(keyword)) {
        keywords[keyword] = Math.max(one, other);
      } else if (LOWERED.has(keyword)) {
        keywords[keyword] = Math.min(one, other);
      }
    }
  }
  return keywords;
}

function sharedKeywords(shapes: readonly Shape[]): Record<string, unknown> {
  const [first, ...others] = shapes.map((shape) => shape.keywords);
  const shared = Object.entries(first ?? {}).filter(
    ([keyword, value]) =>
      keyword !== "enum" &&
      others.every((other) => JSON.stringify(other[keyword]) === JSON.stringify(value)),
  );
  return Object.fromEntries(shared);
}

function unitedEnum(shapes: readonly Shape[]): { enum?: unknown[] } {
  const lists = shapes.map((shape) => shape.keywords.enum);
  return lists.every((list): list is unknown[] => Array.isArray(list))
    ? { enum: [...new Set(lists.flat())] }
    : {};
}

/** The object without undefined members. */
function defined<T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}
