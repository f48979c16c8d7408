import {
  create,
  createFileRegistry,
  type DescService,
  getOption,
  setExtension,
} from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  MethodDescriptorProtoSchema,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { Access, access } from "../../../../gen/tessera/v1/access_pb.js";
import { TokenService } from "../../../../gen/tessera/v1/token_pb.js";
import { register } from "../../../../src/server/rpc/engine/invoker.ts";
import { accessTable } from "../../../../src/server/rpc/interceptors/access.ts";

/** A service with one method. */
function serviceWith(found?: Access): DescService {
  const options = create(MethodOptionsSchema);
  if (found !== undefined) {
    setExtension(options, access, found);
  }
  const file = create(FileDescriptorProtoSchema, {
    name: "made.proto",
    package: "made",
    syntax: "proto3",
    messageType: [{ name: "Nothing" }],
    service: [
      {
        name: "Made",
        method: [
          create(MethodDescriptorProtoSchema, {
            name: "Do",
            inputType: ".made.Nothing",
            outputType: ".made.Nothing",
            options,
          }),
        ],
      },
    ],
  });
  const service = createFileRegistry(file, () => undefined).getService("made.Made");
  if (service === undefined) {
    throw new Error("the service was not made");
  }
  return service;
}

it("knows the access of every method that is served, and no access to others", () => {
  const accessOf = accessTable([register(TokenService, {})]);
  for (const method of TokenService.methods) {
    expect(accessOf(method)).toBe(getOption(method, access));
    expect(accessOf(method)).not.toBe(Access.UNSPECIFIED);
  }
  const [other] = serviceWith(Access.PUBLIC).methods;
  expect(other && accessOf(other)).toBe(Access.UNSPECIFIED);
});

it.each([undefined, Access.UNSPECIFIED])("refuses a method whose access is %s", (found) => {
  const service = serviceWith(found);
  expect(() => accessTable([register(service, {})])).toThrow(/made\.Made\.Do.*option access/);
  const foreign = { [service.typeName]: Access.PUBLIC };
  expect(accessTable([register(service, {})], foreign)(service.method.do as never)).toBe(
    Access.PUBLIC,
  );
});
