/** No reply to a request in time: the cause of a StoreError. */
export class NoReply extends Error {
  override readonly name = "NoReply";
  /** What to do; undefined unless it has happened several times in a row, and the client would not recover by itself. */
  readonly advice: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly advice?: string | undefined } = {}) {
    super(message, options);
    this.advice = options.advice;
  }
}
