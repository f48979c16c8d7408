/**
 * The page of a refused call for who opens a path of a deployment in a browser: it says what to do,
 * where a program gets the error as JSON. It has no script, and nothing of the request is in it.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Problem, Reason } from "../../errors.ts";
import { styledPagePolicy } from "../http/content-security-policy.ts";
import { httpStatus } from "../http/error-status.ts";
import { sendProblem } from "../http/problem.ts";

const HEADER = "<code>Authorization: Bearer &lt;token&gt;</code>";
const EXTENSION = `A browser sends no token by itself: an extension that adds headers, such as ModHeader, sends ${HEADER} with what you open here. The page at <a href="/">/</a> asks for a token, too, and calls with it.`;

const NOT_FOUND =
  'The address may be mistyped, or you may not see what is there. <a href="/">Go to the first page</a>, from where all others are reached.';

/** What is said, by reason; other refusals have no page. */
const PAGES: {
  readonly [reason in Reason]?: { readonly title: string; readonly text: string };
} = {
  TOKEN_MISSING: { title: "This needs a token", text: EXTENSION },
  TOKEN_INVALID: {
    title: "The token is not valid",
    text: `It may be mistyped, expired or deleted, or not be meant for this time or network. ${EXTENSION}`,
  },
  ACCESS_DENIED: {
    title: "The token may not do this",
    text: `The person who gave it to you can give you one that may call this deployment: <code>tessera token create NAME --deployment DEPLOYMENT</code>. ${EXTENSION}`,
  },
  DEPLOYMENT_NOT_FOUND: { title: "There is no such page", text: NOT_FOUND },
  ENDPOINT_NOT_FOUND: { title: "There is no such page", text: NOT_FOUND },
};

/** That of the console, src/console/app/favicon.svg: the page loads nothing. */
const LOGO = `<svg viewBox="0 0 16 16" width="24" height="24" aria-hidden="true"><rect x="1" y="1" width="6" height="6" rx="1.4" fill="#b4472a"/><rect x="9" y="1" width="6" height="6" rx="1.4" fill="#d99a6c"/><rect x="1" y="9" width="6" height="6" rx="1.4" fill="#3f7f86"/><rect x="9" y="9" width="6" height="6" rx="1.4" fill="#b4472a"/></svg>`;

const STYLE = `:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:36rem;margin:15vh auto;padding:0 1.5rem}
h1{font-size:1.375rem}code{font:.875em ui-monospace,monospace}a{color:light-dark(#4f46c8,#a7a1ff)}`;

const POLICY = styledPagePolicy(STYLE);

/** Answers with an error: with its page where there is one and the caller is a browser, else as JSON. */
export function sendProblemOrPage(
  req: FastifyRequest,
  reply: FastifyReply,
  found: Problem,
): FastifyReply {
  const page = PAGES[found.reason];
  if (page === undefined || !wantsPage(req)) {
    return sendProblem(reply, found);
  }
  for (const [name, value] of found.metadata) {
    reply.header(name, value);
  }
  return reply
    .code(httpStatus(found))
    .headers({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": POLICY,
      vary: "Accept",
    })
    .send(
      `<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${page.title}</title><style>${STYLE}</style>\n${LOGO}\n<h1>${page.title}</h1>\n<p>${page.text}</p>\n</html>\n`,
    );
}

/** Browsers name pages among what they take, and JSON never. */
function wantsPage({ headers: { accept = "" } }: FastifyRequest): boolean {
  return /\btext\/html\b/i.test(accept) && !/\bjson\b/i.test(accept);
}
