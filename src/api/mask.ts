/** Updates: field masks, and the versions of what is updated. */
import { type DescMessage, isFieldSet, type MessageShape } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { type Problem, problem } from "../errors.ts";
import { invalidField } from "./violations.ts";

/**
 * The fields that an update changes (https://google.aip.dev/134): those in the
 * mask, all for `*`, and without a mask those that are set.
 *
 * Throws REQUEST_INVALID for a path that is no field, for one that cannot be
 * changed, and for an update that changes nothing: `authorization: false`
 * without a mask has no effect, and its sender should know that.
 */
export function changedFields<Desc extends DescMessage, Name extends string>(
  desc: Desc,
  { message, mask }: { readonly message: MessageShape<Desc>; readonly mask: FieldMask | undefined },
  changeable: readonly Name[],
): ReadonlySet<Name> {
  const paths = mask?.paths ?? [];
  if (paths.length === 0) {
    const set = changeable.filter((name) => {
      const field = desc.fields.find((one) => one.name === name);
      return field !== undefined && isFieldSet(message, field);
    });
    if (set.length === 0) {
      throw invalidField(
        "update_mask",
        `is empty and no field is set, so nothing would change: set one of ${changeable.join(", ")}, and to set one to false or empty name it in update_mask`,
      );
    }
    return new Set(set);
  }
  if (paths.length === 1 && paths[0] === "*") {
    return new Set(changeable);
  }
  for (const path of paths) {
    if (!(changeable as readonly string[]).includes(path)) {
      const known = desc.fields.some(({ name }) => name === path);
      const fault = known ? "cannot be changed" : "is no field";
      throw invalidField(
        "update_mask",
        `names ${JSON.stringify(path.slice(0, 100))}, which ${fault}: what can be changed is ${changeable.join(", ")}`,
      );
    }
  }
  return new Set(paths as Name[]);
}

/** Whether an update stops something and changes nothing else of it. */
export function onlyDisables(changed: ReadonlySet<string>, disabled: boolean): boolean {
  return disabled && changed.size === 1 && changed.has("disabled");
}

/** The error for a change to what is not as its caller has read it any more, such as `webhook app`. */
export function changedMeanwhile(what: string): Problem {
  return problem(
    "VERSION_CONFLICT",
    `${what} was changed by somebody else meanwhile: read it again, and repeat the change if it still fits`,
  );
}
