/** The cause of a StoreError, and what whoever runs the program can do about it. */
export class AdvisedCause extends Error {
  /** Undefined if there is nothing to do. */
  readonly advice: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly advice?: string | undefined } = {}) {
    super(message, options);
    this.advice = options.advice;
  }
}
