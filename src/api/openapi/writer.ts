/** Writes the platform's OpenAPI document once, when it is first asked for. */
import type { DescService } from "@bufbuild/protobuf";
import { sessionCookieName } from "../../auth/session-cookie.ts";
import type { JsonSchema } from "../../protocol/manifest.ts";
import { type Binding, compileBindings } from "../../server/rest/binding.ts";
import type { RestRoute } from "../../server/rest/path-matching.ts";
import type { ServiceRegistration } from "../../server/rpc/engine/invoker.ts";
import { SCHEMAS } from "../../service/openapi/components.ts";
import { ERROR, errorComponents, SESSION_SCHEME, statusesOf, TOKEN_SCHEME } from "./answers.ts";
import { commentOf } from "./comments.ts";
import { operationOf } from "./operation.ts";
import { MessageSchemas } from "./schemas.ts";

interface DocumentWriterOptions {
  readonly version: string;
  /** As people sign in: over https the session's cookie has another name. */
  readonly secureCookies: boolean;
}

/** Returns a function that writes the document of these services as JSON text. */
export function documentWriter(
  services: () => readonly ServiceRegistration[],
  { version, secureCookies }: DocumentWriterOptions,
): () => string {
  const sessionCookie = sessionCookieName(secureCookies);
  let text: string | undefined;
  return () => {
    text ??= JSON.stringify(
      platformDocument(
        services().map(({ service }) => service),
        { version, sessionCookie },
      ),
    );
    return text;
  };
}

/**
 * The OpenAPI 3.1 document of the platform's REST paths, generated from what serves them: the
 * bindings of `google.api.http`, the rules of `buf.validate`, and the comments of the proto files.
 */
interface PlatformDocumentOptions {
  readonly version: string;
  /** The name of the cookie that holds a session. */
  readonly sessionCookie: string;
}

/** Describes the REST paths of these services. Throws for a rule that the document could not say. */
export function platformDocument(
  services: readonly DescService[],
  { version, sessionCookie }: PlatformDocumentOptions,
): JsonSchema {
  const schemas = new MessageSchemas();
  const paths: Record<string, Record<string, JsonSchema>> = {};
  const shapes = new Map<string, Path>();
  const routes = compileBindings(services);
  for (const route of routes) {
    const own = pathOf(route);
    const shape = own.path.replaceAll(/\{[^}]+\}/g, "{}");
    // Templates that differ in the names of their variables are one path, by the first one's names.
    const { path, names } = shapes.get(shape) ?? own;
    shapes.set(shape, { path, names });
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: operationOf(route.target, names, schemas),
    };
  }
  const shown = services.filter((one) => routes.some(({ target }) => target.method.parent === one));
  const operations = Object.values(paths).flatMap((byMethod) => Object.values(byMethod));
  return {
    openapi: "3.1.0",
    info: { title: "Tessera", version },
    servers: [{ url: "/" }],
    tags: shown.map((one) => ({ name: one.name, description: commentOf(one).join("\n\n") })),
    paths,
    components: {
      schemas: {
        ...schemas.components,
        [ERROR]: SCHEMAS[ERROR],
        "tessera.ErrorDetail": SCHEMAS["tessera.ErrorDetail"],
      },
      responses: errorComponents(statusesOf(operations)),
      securitySchemes: {
        [TOKEN_SCHEME]: { type: "http", scheme: "bearer" },
        [SESSION_SCHEME]: { type: "apiKey", in: "cookie", name: sessionCookie },
      },
    },
  };
}

interface Path {
  readonly path: string;
  /** Names of its variables, in order. */
  readonly names: readonly string[];
}

/** The template without the method's name, which `compileBindings` adds; each variable by the last of its fields. */
function pathOf({ text, target }: RestRoute<Binding>): Path {
  const names = [...target.fields.values()].map((fields) => fields.at(-1)?.name ?? "");
  const left = [...names];
  const path = text
    .slice(0, text.indexOf(" ("))
    .replaceAll(/\{[^}]+\}/g, () => `{${left.shift()}}`);
  return { path, names };
}
