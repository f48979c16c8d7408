/**
 * A watchdog for what arrives: a connection whose other end is gone without a word (a machine that
 * sleeps, a NAT that forgot it) is silent for ever, so what waits for it gives up after a while.
 */

/** Settles as the promise does; rejects when that takes longer than `maxMs`. */
export function within<T>(promise: Promise<T>, maxMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`nothing came for ${maxMs} ms`)), maxMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/**
 * The same response, whose body fails when nothing of it comes for `quietMs`. Only the time in
 * which somebody reads counts: who reads slowly is no silence.
 */
export function attended(response: Response, quietMs: number): Response {
  const { body, headers, status, statusText } = response;
  if (body === null) {
    return response;
  }
  const reader = body.getReader();
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await within(reader.read(), quietMs);
          if (done) {
            controller.close();
          } else {
            controller.enqueue(value);
          }
        } catch (err) {
          // Ends the connection, too.
          reader.cancel(err).catch(() => {});
          throw err;
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, { headers, status, statusText });
}
