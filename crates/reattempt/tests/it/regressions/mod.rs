//! Defects that were once there, by topic, and the tables that keep them away.

mod breaking;
mod classifying;
mod deadline_field;
mod destinations;
mod ending;
mod hooks;

use crate::calls::support;
