use super::*;
use crate::provider::contract::provider_contract;

provider_contract!(GatewayStage<HttpRouting>);
