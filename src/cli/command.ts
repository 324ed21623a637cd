/** The commands of the program: those of the library, with notes in their help. */
import { Command as LibraryCommand } from 'commander';

export class Command extends LibraryCommand {
  override createCommand(name?: string): Command {
    return new Command(name);
  }

  /** What the help says below the options: how it works, and examples. */
  notes(text: string): this {
    return this.addHelpText('after', text);
  }
}
