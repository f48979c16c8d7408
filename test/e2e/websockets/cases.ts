/**
 * What a WebSocket may carry, right and wrong: the kinds of cases of the Autobahn test suite,
 * written anew. A case is what a client sends once the WebSocket is open; a server's answers to it
 * have to be the same wherever it runs.
 */
import { deflateRawSync } from "node:zlib";
import { BINARY, CLOSE, close, frame, PING, PONG, TEXT, text } from "./client.ts";

export interface Case {
  readonly what: string;
  /**
   * Sent one by one, each when the messages before it were answered. What a server closes for is the
   * last one: what a client sends on may break the connection before it has read why.
   */
  readonly sent: readonly Buffer[];
  /** Whether compression is offered, and how. */
  readonly extensions?: string;
  /** The client ends its side after that; otherwise the server does. */
  readonly ends?: boolean;
  /** It is about lengths that frames claim, of which some servers count what has come. */
  readonly claims?: boolean;
}

/** Largest message of uvicorn; of `ws` the test sets it. */
const MAX_MESSAGE_BYTES = 16 * 1024 ** 2;

const DEFLATE = "permessage-deflate; client_max_window_bits";

const BYE = close(1000, "bye");

const LENGTHS = [0, 1, 125, 126, 127, 128, 65_535, 65_536, 70_000];

function framing(): Case[] {
  const of = (length: number, opcode: number, lengthBytes?: 0 | 2 | 8): Case => ({
    what: `a frame of type ${opcode} with ${length} bytes, its length in ${lengthBytes ?? "the shortest"}`,
    sent: [
      frame({ opcode, payload: "*".repeat(length), ...(lengthBytes && { lengthBytes }) }),
      BYE,
    ],
  });
  const claimed = (length: bigint, what: string): Case => ({
    what: `a length of ${what}`,
    sent: [frame({ opcode: BINARY, length, lengthBytes: 8 })],
    claims: length < 2n ** 63n,
  });
  return [
    ...[TEXT, BINARY].flatMap((opcode) => LENGTHS.map((length) => of(length, opcode))),
    ...[0, 5, 125].flatMap((length) => [of(length, TEXT, 2), of(length, TEXT, 8)]),
    of(200, TEXT, 8),
    claimed(BigInt(MAX_MESSAGE_BYTES) + 1n, "one byte too much"),
    claimed(1024n ** 3n, "1 GiB"),
    claimed(2n ** 63n - 1n, "as much as there can be"),
    claimed(2n ** 63n, "a negative number"),
    {
      what: "frames of one message that are too much together",
      sent: [
        frame({ opcode: BINARY, payload: Buffer.alloc(1024), fin: false }),
        frame({ opcode: 0, length: BigInt(MAX_MESSAGE_BYTES), lengthBytes: 8 }),
      ],
      claims: true,
    },
    {
      what: "a message of 1 MiB",
      sent: [frame({ opcode: BINARY, payload: Buffer.alloc(1024 ** 2, "m") }), BYE],
    },
    {
      what: "200 messages at once",
      sent: [Buffer.concat(Array.from({ length: 200 }, (_, n) => text(`${n}`))), BYE],
    },
    { what: "a message byte by byte", sent: [...bytes(text("byte by byte")), BYE] },
    { what: "a long message in pieces", sent: [...bytes(text("l".repeat(300)), 7), BYE] },
    { what: "an unmasked text", sent: [frame({ opcode: TEXT, payload: "bare", masked: false })] },
    {
      what: "an unmasked close",
      sent: [frame({ opcode: CLOSE, payload: Buffer.from([3, 232]), masked: false })],
    },
    {
      what: "a text that ends amid its frame",
      ends: true,
      sent: [text("never whole").subarray(0, 9)],
    },
    { what: "nothing", ends: true, sent: [] },
    { what: "what is no frame", sent: [Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n")] },
  ];
}

function reserved(): Case[] {
  const bits = [1, 2, 3, 4, 5, 6, 7];
  const opcodes = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15];
  return [
    ...bits.map((reserved) => ({
      what: `reserved bits ${reserved} of a text`,
      sent: [text("before"), frame({ opcode: TEXT, payload: "after", reserved })],
    })),
    ...bits.map((reserved) => ({
      what: `reserved bits ${reserved} of a ping`,
      sent: [frame({ opcode: PING, reserved })],
    })),
    ...bits.map((reserved) => ({
      what: `reserved bits ${reserved} of a close`,
      sent: [frame({ opcode: CLOSE, payload: Buffer.from([3, 232]), reserved })],
    })),
    ...opcodes.map((opcode) => ({
      what: `the reserved type ${opcode}`,
      sent: [text("before"), frame({ opcode, payload: "after" })],
    })),
    ...opcodes.map((opcode) => ({
      what: `the reserved type ${opcode}, amid a message`,
      sent: [
        Buffer.concat([frame({ opcode: TEXT, payload: "be", fin: false }), frame({ opcode })]),
      ],
    })),
  ];
}

function pings(): Case[] {
  return [
    ...[0, 1, 124, 125].map((length) => ({
      what: `a ping with ${length} bytes`,
      sent: [frame({ opcode: PING, payload: Buffer.alloc(length, 0xfe) }), BYE],
    })),
    ...[126, 127, 70_000].map((length) => ({
      what: `a ping with ${length} bytes, which is too long`,
      sent: [frame({ opcode: PING, payload: Buffer.alloc(length, 0xfe) })],
    })),
    {
      what: "a ping in two frames",
      sent: [
        Buffer.concat([frame({ opcode: PING, payload: "a", fin: false }), frame({ opcode: 0 })]),
      ],
    },
    {
      what: "a close that goes on",
      sent: [frame({ opcode: CLOSE, payload: Buffer.from([3, 232]), fin: false })],
    },
    {
      what: "ten pings",
      sent: [
        ...Array.from({ length: 10 }, (_, n) => frame({ opcode: PING, payload: `${n}` })),
        BYE,
      ],
    },
    {
      what: "ten pings at once",
      sent: [
        Buffer.concat(
          Array.from({ length: 10 }, (_, n) => frame({ opcode: PING, payload: `${n}` })),
        ),
        BYE,
      ],
    },
    {
      what: "a ping byte by byte",
      sent: [...bytes(frame({ opcode: PING, payload: "slow" })), BYE],
    },
    {
      what: "a pong that nobody asked for",
      sent: [frame({ opcode: PONG, payload: "x" }), text("after"), BYE],
    },
    {
      what: "a pong without a word",
      sent: [frame({ opcode: PONG }), frame({ opcode: PING }), BYE],
    },
    { what: "an unmasked ping", sent: [frame({ opcode: PING, masked: false })] },
  ];
}

function fragments(): Case[] {
  const begin = (payload: string, opcode = TEXT) => frame({ opcode, payload, fin: false });
  const middle = (payload: string) => frame({ opcode: 0, payload, fin: false });
  const end = (payload: string) => frame({ opcode: 0, payload });
  const ping = frame({ opcode: PING, payload: "amid" });
  const pong = frame({ opcode: PONG, payload: "amid" });
  return [
    { what: "a text in two frames", sent: [begin("one "), end("two"), BYE] },
    {
      what: "bytes in three frames",
      sent: [begin("one ", BINARY), middle("two "), end("three"), BYE],
    },
    {
      what: "a text in frames of which some are empty",
      sent: [begin(""), middle("x"), middle(""), end(""), BYE],
    },
    { what: "a message of empty frames alone", sent: [begin(""), middle(""), end(""), BYE] },
    {
      what: "a message of 300 frames",
      sent: [begin("0"), ...Array.from({ length: 298 }, () => middle("x")), end("1"), BYE],
    },
    {
      what: "a message of 300 frames at once",
      sent: [
        Buffer.concat([begin("0"), ...Array.from({ length: 298 }, () => middle("x")), end("1")]),
        BYE,
      ],
    },
    { what: "pings amid a message", sent: [begin("a"), ping, middle("b"), ping, end("c"), BYE] },
    { what: "pongs amid a message", sent: [begin("a"), pong, middle("b"), pong, end("c"), BYE] },
    {
      what: "a ping amid a message, byte by byte",
      sent: [...bytes(Buffer.concat([begin("a"), ping, end("b")])), BYE],
    },
    { what: "a close amid a message", sent: [begin("a"), BYE] },
    { what: "a text amid a text", sent: [Buffer.concat([begin("a"), text("b")])] },
    { what: "the begin of a text amid one", sent: [Buffer.concat([begin("a"), begin("b")])] },
    { what: "a continuation of nothing", sent: [end("alone")] },
    { what: "a continuation of nothing that goes on", sent: [middle("alone")] },
    { what: "a continuation after a whole message", sent: [text("whole"), end("more")] },
    {
      what: "a continuation after a message in frames",
      sent: [begin("a"), end("b"), end("more")],
    },
    { what: "two messages in frames", sent: [begin("a"), end("b"), begin("c"), end("d"), BYE] },
  ];
}

const VALID: readonly (readonly [what: string, text: Buffer])[] = [
  ["of ASCII", Buffer.from("Hello")],
  ["of two bytes a character", Buffer.from("äöüß")],
  ["of three bytes a character", Buffer.from("κόσμε € ☃")],
  ["of four bytes a character", Buffer.from("😀𐍈")],
  ["with a zero", Buffer.from("a\0b")],
  ["with a byte order mark", Buffer.from("\ufeffx")],
  ["of the last of each length", Buffer.from("\u007f\u07ff\ud7ff\ue000\uffff\u{10ffff}")],
  ["of the first of each length", Buffer.from("\u0000\u0080\u0800\u{10000}")],
  ["of no characters (U+FFFE, U+1FFFE)", Buffer.from("\ufffe\u{1fffe}")],
  ["of the replacement", Buffer.from("\ufffd")],
];

const INVALID: readonly (readonly [what: string, text: readonly number[]])[] = [
  ["a continuation alone", [0x80]],
  ["the last continuation alone", [0xbf]],
  ["a continuation after a letter", [0x61, 0x80]],
  ["a begin of two bytes alone", [0xc3]],
  ["a begin of two bytes, then a letter", [0xc3, 0x61]],
  ["a begin of three bytes alone", [0xe2, 0x82]],
  ["a begin of three bytes, then a letter", [0xe2, 0x82, 0x61]],
  ["a begin of four bytes alone", [0xf0, 0x9f, 0x98]],
  ["a slash in two bytes", [0xc0, 0xaf]],
  ["a slash in three bytes", [0xe0, 0x80, 0xaf]],
  ["a slash in four bytes", [0xf0, 0x80, 0x80, 0xaf]],
  ["the last of one byte in two", [0xc1, 0xbf]],
  ["the last of two bytes in three", [0xe0, 0x9f, 0xbf]],
  ["the last of three bytes in four", [0xf0, 0x8f, 0xbf, 0xbf]],
  ["a zero in two bytes", [0xc0, 0x80]],
  ["the first high surrogate", [0xed, 0xa0, 0x80]],
  ["the last low surrogate", [0xed, 0xbf, 0xbf]],
  ["a pair of surrogates", [0xed, 0xa0, 0x80, 0xed, 0xb0, 0x80]],
  ["one more than there are", [0xf4, 0x90, 0x80, 0x80]],
  ["five bytes", [0xf8, 0x88, 0x80, 0x80, 0x80]],
  ["six bytes", [0xfc, 0x84, 0x80, 0x80, 0x80, 0x80]],
  ["0xfe", [0xfe]],
  ["0xff", [0xff]],
  ["Latin-1", [0x67, 0x72, 0xfc, 0xdf, 0x65]],
];

function utf8(): Case[] {
  const whole = (payload: Buffer) => frame({ opcode: TEXT, payload });
  const inFrames = (parts: readonly Buffer[]) =>
    parts.map((payload, at) =>
      frame({ opcode: at === 0 ? TEXT : 0, payload, fin: at === parts.length - 1 }),
    );
  return [
    ...VALID.map(([what, payload]) => ({ what: `a text ${what}`, sent: [whole(payload), BYE] })),
    ...VALID.map(([what, payload]) => ({
      what: `a text ${what}, in frames of one byte`,
      sent: [...inFrames(bytes(payload)), BYE],
    })),
    ...INVALID.map(([what, payload]) => ({
      what: `a text that is none: ${what}`,
      sent: [whole(Buffer.from(payload))],
    })),
    ...INVALID.map(([what, payload]) => ({
      what: `a text that is none, in frames of one byte: ${what}`,
      sent: [Buffer.concat(inFrames(bytes(Buffer.from([0x61, ...payload]))))],
    })),
    ...INVALID.slice(0, 3).map(([what, payload]) => ({
      what: `bytes that are no text: ${what}`,
      sent: [frame({ opcode: BINARY, payload: Buffer.from(payload) }), BYE],
    })),
    {
      what: "a text that is none, in its second frame",
      sent: [
        Buffer.concat(inFrames([Buffer.from("good"), Buffer.from([0xff]), Buffer.from("good")])),
      ],
    },
  ];
}

const CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014];
const OTHER_CODES = [3000, 3999, 4000, 4999];
const WRONG_CODES = [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535];

function closes(): Case[] {
  return [
    ...[...CODES, ...OTHER_CODES].map((code) => ({
      what: `the code ${code}`,
      sent: [close(code, "why")],
    })),
    ...WRONG_CODES.map((code) => ({
      what: `the code ${code}, which nobody may send`,
      sent: [close(code, "why")],
    })),
    { what: "a close without a code", sent: [frame({ opcode: CLOSE })] },
    {
      what: "a close with half a code",
      sent: [frame({ opcode: CLOSE, payload: Buffer.from([3]) })],
    },
    { what: "a close with a code alone", sent: [close(1000)] },
    { what: "the longest reason", sent: [close(1000, "r".repeat(123))] },
    { what: "a reason that is too long", sent: [close(1000, "r".repeat(124))] },
    { what: "a reason in UTF-8", sent: [close(1000, "ça suffit ☃")] },
    { what: "a reason that is no text", sent: [close(1000, Buffer.from([0xce, 0xba, 0xff]))] },
    { what: "a reason that ends amid a character", sent: [close(1000, Buffer.from([0xe2, 0x82]))] },
    { what: "a close byte by byte", sent: bytes(close(1000, "slow")) },
    { what: "a text after the close", sent: [Buffer.concat([BYE, text("late")])] },
    { what: "a ping after the close", sent: [Buffer.concat([BYE, frame({ opcode: PING })])] },
    { what: "two closes", sent: [Buffer.concat([BYE, close(1001)])] },
    { what: "a close just after a message", sent: [Buffer.concat([text("last"), BYE])] },
  ];
}

/** A message as permessage-deflate has it (RFC 7692, section 7.2.1). */
function deflated(text: string | Buffer): Buffer {
  const whole = deflateRawSync(text, { finishFlush: 2 });
  return whole.subarray(0, whole.length - 4);
}

function compression(): Case[] {
  const compressed = (
    payload: Buffer,
    more: { readonly fin?: boolean; readonly opcode?: number } = {},
  ) => frame({ opcode: TEXT, reserved: 4, payload, ...more });
  const small = deflated("compressed text");
  const repeated = deflated("again and again ".repeat(500));
  const offers = [
    "permessage-deflate",
    DEFLATE,
    "permessage-deflate; client_max_window_bits=10",
    "permessage-deflate; server_max_window_bits=10",
    "permessage-deflate; server_no_context_takeover",
    "permessage-deflate; client_no_context_takeover",
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover; client_max_window_bits",
    "permessage-deflate; server_max_window_bits=10, permessage-deflate",
    "permessage-deflate; server_max_window_bits=7",
    "permessage-deflate; server_max_window_bits=16, permessage-deflate",
    "permessage-deflate; unknown_parameter",
    "permessage-deflate; client_max_window_bits; client_max_window_bits",
    "x-webkit-deflate-frame",
    "unknown-extension, permessage-deflate",
  ];
  return [
    ...offers.map((extensions) => ({
      what: `the offer ${extensions}`,
      sent: [text("not compressed"), text("not compressed"), BYE],
      extensions,
    })),
    ...[
      { what: "a compressed text", sent: [compressed(small), BYE] },
      {
        what: "compressed texts that look back",
        sent: [compressed(small), compressed(small), BYE],
      },
      { what: "a long compressed text", sent: [compressed(repeated), BYE] },
      { what: "compressed bytes", sent: [compressed(small, { opcode: BINARY }), BYE] },
      { what: "an empty compressed text", sent: [compressed(Buffer.from([0])), BYE] },
      {
        what: "compressed and other texts",
        sent: [text("plain"), compressed(small), text("plain"), BYE],
      },
      {
        what: "a compressed text in two frames, with a ping amid",
        sent: [
          compressed(repeated.subarray(0, 5), { fin: false }),
          frame({ opcode: PING }),
          frame({ opcode: 0, payload: repeated.subarray(5) }),
          BYE,
        ],
      },
      {
        what: "a continuation that says it is compressed",
        sent: [
          Buffer.concat([
            compressed(small.subarray(0, 5), { fin: false }),
            frame({ opcode: 0, reserved: 4, payload: small.subarray(5) }),
          ]),
        ],
      },
      {
        what: "a compressed text that is none",
        sent: [compressed(Buffer.from([0xff, 0xff, 0xff, 0xff]))],
      },
      {
        what: "a compressed text that is no UTF-8",
        sent: [compressed(deflated(Buffer.from([0xc3, 0x28])))],
      },
      {
        what: "a compressed ping",
        sent: [frame({ opcode: PING, reserved: 4, payload: small })],
      },
      {
        what: "a compressed message of 17 MiB",
        sent: [compressed(deflated(Buffer.alloc(17 * 1024 ** 2)), { opcode: BINARY })],
      },
    ].map((each) => ({ ...each, extensions: DEFLATE })),
    { what: "a compressed text where nothing was agreed", sent: [compressed(small)] },
  ];
}

/** In pieces of as many bytes. */
function bytes(all: Buffer, size = 1): Buffer[] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) =>
    all.subarray(at * size, (at + 1) * size),
  );
}

export const CASES: readonly Case[] = [
  ...framing(),
  ...reserved(),
  ...pings(),
  ...fragments(),
  ...utf8(),
  ...closes(),
  ...compression(),
];
