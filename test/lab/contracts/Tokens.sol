// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A token of which anybody may make more, and which anybody may pause. Its errors are those of OpenZeppelin 5.
contract MintableToken {
    string public name;
    string public symbol;
    uint8 public immutable decimals;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    bool public paused;

    error EnforcedPause();
    error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed);

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(string memory name_, string memory symbol_, uint8 decimals_) {
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
    }

    function mint(address to, uint256 value) public {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function setPaused(bool paused_) external {
        paused = paused_;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        if (allowance[from][msg.sender] != type(uint256).max) allowance[from][msg.sender] -= value;
        move(from, to, value);
        return true;
    }

    function move(address from, address to, uint256 value) private {
        if (paused) revert EnforcedPause();
        if (balanceOf[from] < value) revert ERC20InsufficientBalance(from, balanceOf[from], value);
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}

/// The chain's own currency as a token, in which routers keep native fees.
contract WrappedNative is MintableToken {
    constructor() MintableToken("Wrapped Ether", "WETH", 18) {}

    function deposit() external payable {
        mint(msg.sender, msg.value);
    }
}
