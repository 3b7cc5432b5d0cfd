//! Tests of former defects, by topic, and the tables that prevent them.

mod breaking;
mod classifying;
mod deadline_field;
mod destinations;
mod ending;
mod hooks;

use crate::calls::support;
