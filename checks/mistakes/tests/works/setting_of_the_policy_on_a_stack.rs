//! A setting of the policy, called on the standard stack.

use reattempt::standard::StandardLayer;

fn main() {
    let _ = StandardLayer::http().max_attempts(3);
}
