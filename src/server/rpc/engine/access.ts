/** Who may call each method: the option `access` of the proto files, read once at start. */
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { Access, access } from "../../../../gen/tessera/v1/access_pb.js";
import type { ServiceRegistration } from "./invoker.ts";

export type AccessOf = (method: DescMethod) => Access;

/** Services of others have no such option in their files: their access is given by their full names. */
export interface ForeignAccess {
  readonly [service: string]: Access;
}

/** Reads the access of every method that is served. Throws when one has none; a method that is not served has none. */
export function accessTable(
  services: readonly ServiceRegistration[],
  foreign: ForeignAccess = {},
): AccessOf {
  const table = new Map<DescMethod, Access>();
  for (const method of services.flatMap(({ service }) => service.methods)) {
    const name = `${method.parent.typeName}.${method.name}`;
    const found = foreign[method.parent.typeName] ?? getOption(method, access);
    if (found === Access.UNSPECIFIED) {
      throw new Error(`${name} cannot be served: its proto file must give it the option access`);
    }
    table.set(method, found);
  }
  return (method) => table.get(method) ?? Access.UNSPECIFIED;
}

/** True for an access that is decided by the caller's part in one organization. */
export function isInOrganization(found: Access): boolean {
  return found === Access.DEVELOPER || found === Access.ADMIN;
}
