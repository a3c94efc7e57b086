//! What the manual prints is what the program prints.

use crate::program::run;

#[test]
fn the_manual_shows_the_output_as_it_is() {
    let manual = include_str!("../../docs/sizing.md");
    let mut shown = 0;
    for block in manual.split("```text\n$ pushonce ").skip(1) {
        let (command, rest) = block.split_once('\n').expect("a command");
        let (page, _) = rest.split_once("```").expect("an end");
        let arguments: Vec<_> = command.split(' ').collect();
        assert_eq!(run(&arguments, b"").out, page, "pushonce {command}");
        shown += 1;
    }
    assert_eq!(shown, 2);
}
